// Package observe is the interface through which guards, locks and caches of pages report to package admin. The feeds
// of package cdc use it to note beside a cache up to where they have invalidated it.
package observe

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/count"
)

// Guard is what a Guard shows.
type Guard struct {
	Prefix, Instance string
	Numbers          *count.List
	Caches           func() []Cache // first keys without one, then by name
	Troubles         func() Troubles
	Happened         func() map[string]uint64 // how often each event did, as the log names it
	Tags, Keys       Known
	Viewer           *atomic.Pointer[Viewer] // of package admin; nil: nobody looks

	// InvalidateCache is Cache.InvalidateAll for the Cache of the name, if there is one.
	InvalidateCache func(ctx context.Context, name string) error

	// Redis runs a command, for notes under the Prefix.
	Redis func(ctx context.Context, args ...any) (any, error)

	Server string // where that is, for people
}

// Cache is a Cache, or of no name: what belongs to none. Its loads fail.
type Cache struct {
	Name    string
	Failing Failing
}

// Failing is how many of a Cache's loads fail.
type Failing struct {
	For           time.Duration // for how long many do; 0: they do not
	Loads, Failed uint64        // of the last seconds
	Last          string        // what the last error said
}

// Known says which kinds of tags or keys loads have had, nil: that is not known, and which others were invalidated.
type Known interface {
	Kinds() []string
	Unknown() map[string]Mistyped
}

// Mistyped is how often a kind was invalidated that no load has had, and when last.
type Mistyped struct {
	Times uint64
	Last  time.Time
}

// Troubles are what is wrong, and the last error that Redis answered with.
type Troubles struct {
	// Last is for how long each has lasted, 0: there is none: outage (Redis does not answer), slow (it takes longer
	// than the loads that it saves), pending (invalidations are still to be sent), deaf (messages do not arrive),
	// missed (they may have been missed again and again), mute (messages to other local tiers are refused), saturated
	// (loads wait for MaxLoads), limiter (the same, for Config.Limiter), bypassed (the cache is turned off).
	Last map[string]time.Duration

	// Brought are names of those that another brings, if they last: Redis is silent or slow, or refuses whatever it is
	// asked. None: nothing brings any.
	Brought []string

	BypassedUntil time.Time // on all instances; zero: on this one, until it is turned on

	DeafAs string // why messages do not arrive; empty: not known

	Stands string // the oldest intent or update that stands, with its keys; empty: there is none

	Refused   time.Time // when Redis last answered with an error; zero: never
	RefusedAs string    // the operation, and what Redis said
}

// Recently is how long what may be over is shown as what is wrong now.
const Recently = 30 * time.Second

// Count is how many there are of what has the one name, or the other if there are more, or none.
func Count(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return strconv.Itoa(n) + " " + more
}

// Locker is what a Locker or a Quorum shows.
type Locker struct {
	Kind, Prefix, Instance string
	Permits                int           // of a semaphore, as this process wants them; 0: it is another kind
	Servers                int           // of a quorum; 0: it is another kind
	Held                   func() []Held // by this process
	Up                     func() bool   // messages arrive, or none were needed yet; nil: it has none
	Inspect                func(ctx context.Context, name string) (Lock, error)
	Revoke                 func(ctx context.Context, name string) (holders int, err error) // nil: it cannot
}

// Lock is what Redis knows of a lock.
type Lock struct {
	Token, Instance         string // of the holder, or the writer; empty: there is none, or not known
	Holders                 int
	Fence                   int64
	Left                    time.Duration
	Waiting, WaitingReaders int
	By                      []Lock // of a semaphore, each holder; of a quorum, each that some servers name
	Servers                 int    // of a quorum, that name this holder
	Answered                int    // servers of a quorum
}

// Held is a lock that is held.
type Held struct {
	Name, Token string
	Mode        string // exclusive, write, read or permit
	Fence       int64  // 0: there is none
	Began       time.Time
	Trusted     time.Time // until when, unless it is renewed
}

// Pages is what a middleware.Cache shows.
type Pages struct {
	Name, Space string
	Words       []string                          // of PagesCounted.Results
	Reasons     []string                          // of PagesCounted.Reasons
	Read        func() (all, lately PagesCounted) // lately: in the last minutes
	Failed      func() *string                    // the path of the last that failed; nil: Recently none did
	Faulty      func() *string                    // the same, of a stored error
	Unstored    func() *string                    // the same, of one that could not be stored
}

// PagesCounted is how requests for pages were answered, and why responses were not stored of those that were passed on.
type PagesCounted struct{ Results, Reasons [Words]uint64 }

// Viewer counts what goes on in a Guard. It must not wait.
type Viewer interface {
	Answered(kind, key, outcome string)
	Happened(kind, what string)                             // an event that has a line of the log
	Loading(key string, keys int) (ended func(failed bool)) // a loader runs; of many keys it has the first
	Loaded(kind string, took time.Duration, failed bool)    // for a key
}

const (
	// Words is how many things Counts can tell apart.
	Words = 16

	stripes = 8
)

// Counts counts what happens on all processors at once, so each has a few places to count in, a cache line or two each.
// The zero Counts is ready.
type Counts struct {
	stripes [stripes][Words]atomic.Uint64
}

// Add counts one of the things.
func (c *Counts) Add(word int) { c.stripes[rand.Uint32()%stripes][word].Add(1) }

// Sum is how often each was counted.
func (c *Counts) Sum() (all [Words]uint64) {
	for i := range c.stripes {
		for word := range all {
			all[word] += c.stripes[i][word].Load()
		}
	}
	return all
}

type judgeKey struct{}

// WithJudge is the context for invalidating names, in which judge is called for each that a Guard does not know, with
// what counts it.
func WithJudge(ctx context.Context, judge func(name string, count func())) context.Context {
	return context.WithValue(ctx, judgeKey{}, judge)
}

// Unknown is called when a Guard does not know a name that is invalidated. It counts the name, unless there is a judge.
func Unknown(ctx context.Context, name string, count func()) {
	if judge, is := ctx.Value(judgeKey{}).(func(string, func())); is {
		judge(name, count)
	} else {
		count()
	}
}

// looks has a func(any) V for each type that package admin can show as a V. The packages of the types fill it as they
// are initialized, and nothing changes afterwards: so what is shown needs no exported method that only package admin
// could call.
var looks = make(map[reflect.Type]any)

// Register makes values of T be seen as look sees them. It is for the initialization of the package that has T.
func Register[T, V any](look func(T) V) {
	looks[reflect.TypeFor[T]()] = func(shown any) V { return look(shown.(T)) }
}

// Look sees a value as a V; not known: values of its type are none.
func Look[V any](shown any) (seen V, known bool) {
	look, known := looks[reflect.TypeOf(shown)].(func(any) V)
	if known {
		seen = look(shown)
	}
	return seen, known
}
