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

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/run/clock"
)

// Env is the environment of a test. It is the Limiter of the test's client, which asks it before each request.
type Env struct {
	Clock *clock.Manual

	mu     sync.Mutex
	outage error
	loads  map[string]int
	guards map[*Guard]struct{}
	handed []handed
}

// mostHanded is how many values are kept to be looked at again.
const mostHanded = 10_000

// handed is a value that a caller got.
type handed struct {
	key     string
	changed func() (path, what string) // how it differs from what it was; empty: it does not
}

// HandedOut notes a value that a caller gets, for Changed.
func (e *Env) HandedOut(key string, changed func() (path, what string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.handed) < mostHanded {
		e.handed = append(e.handed, handed{key, changed})
	}
}

// Changed calls tell for the keys, each once, of values that were changed after a caller got them, with the path of what is changed. Nobody may use the
// values any more.
func (e *Env) Changed(tell func(key, path string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := make(map[string]bool)
	for _, h := range e.handed {
		if path, what := h.changed(); what != "" && !told[h.key] {
			told[h.key] = true
			tell(h.key, path)
		}
	}
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
func New(now time.Time) *Env {
	return &Env{Clock: clock.NewManual(now), loads: make(map[string]int), guards: make(map[*Guard]struct{})}
}

// Of is the environment of a client; nil if it is not a test's.
func Of(rdb any) *Env {
	env, _ := goredis.Limiter(rdb).(*Env)
	return env
}

// ClockOf is the clock of a *cacheguard.Guard, for packages that keep what grows old in one. Package cacheguard sets it before anything
// runs: to the Guard's users, its clock is nothing.
var ClockOf func(guard any) clock.Clock

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
