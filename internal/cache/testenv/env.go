// Package testenv connects the Guards of a test with the environment that cacheguardtest made for it: they follow its clock, report
// their loads, and say when they are busy.
//
// The environment travels in the Limiter of the test's Redis client. So every Guard on that client is part of it, also
// one that the code under test makes, and nothing about it is global or public.
package testenv

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/run/clock"
)

// Env is the environment of a test. It is the Limiter of the test's client, which asks it before each request.
type Env struct {
	Clock  *clock.Manual
	Values Values

	mu     sync.Mutex
	outage error
	loads  map[string]int
	guards map[*Guard]struct{}
}

// Values are what the kit does with values, which come as *V.
type Values interface {
	// Check returns why a value of the key, to be stored, does not come back from its Codec as it was; nil: it does.
	Check(key string, c protocol.Codec, value any) error

	// HandOut returns what the caller of a Get gets, a *V, in the place of a value that others may have; shown: a Judge has seen that itself.
	HandOut(key string, c protocol.Codec, value any, shown bool) any
}

// Guard is what an environment needs of a Guard.
type Guard struct {
	Storing   func() int    // loads whose callers have the value already
	Working   func() int    // loads, waits for them, and comparisons, also while they wait for the clock
	Listening func() bool   // it hears of invalidations, if it has to
	Recovered func() bool   // it asks Redis again after an outage, and what that kept from Redis is there
	Leases    *lease.Keeper // of the client
}

// New returns an environment whose clock shows the time.
func New(now time.Time, values Values) *Env {
	return &Env{Clock: clock.NewManual(now), Values: values, loads: make(map[string]int), guards: make(map[*Guard]struct{})}
}

// Of is the environment of a client; nil if it is not a test's.
func Of(rdb any) *Env {
	env, _ := goredis.Limiter(rdb).(*Env)
	return env
}

// Allow refuses requests while there is an outage.
func (e *Env) Allow() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outage
}

// ReportResult makes Env a redis.Limiter.
func (e *Env) ReportResult(error) {}

// SetOutage makes requests fail with the error; nil ends the outage.
func (e *Env) SetOutage(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outage = err
}

// Loaded counts a load of the key.
func (e *Env) Loaded(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loads[key]++
}

// Loads is how many loads of the key there were.
func (e *Env) Loads(key string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loads[key]
}

// Join adds a Guard, until leave is called.
func (e *Env) Join(g *Guard) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.guards[g] = struct{}{}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.guards, g)
	}
}

// Guards returns the Guards that are open.
func (e *Env) Guards() []*Guard {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.guards))
}
