package cacheguardtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/testenv"
	"github.com/cacheguard/go/internal/testing/manual"
	"github.com/cacheguard/go/memory"
)

// patience is how long the environment waits for what should take milliseconds, on a machine that may be busy.
const patience = time.Minute

// maxBytes is more than a test stores.
const maxBytes = 1 << 30

// errOutage is the error of every request in an outage. It is a time-out, without the wait for one.
var errOutage = fmt.Errorf("cacheguardtest: outage: %w", context.DeadlineExceeded)

// Env is a Guard with an engine in its process and a clock. Its methods may be called concurrently, also by loaders;
// methods that can fail the test are for the goroutine of the test, as t.Fatal is.
type Env struct {
	// Guard is closed at the end of the test.
	Guard *cacheguard.Guard

	// Redis is a client of package memory, of the test's own. Guards that the code under test makes with it take part:
	// they follow the clock of the environment, and Loads counts their loads. The code that makes them closes them.
	Redis *redis.Client

	t     testing.TB
	inner *inner
}

// New makes an engine, and a Guard on it. It fails the test when cfg is out of range. Both end with the test.
func New(t testing.TB, cfg cacheguard.Config) *Env {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond) // as exact as Redis
	passed := new(values)
	e := &Env{t: t, inner: &inner{
		values: passed, moved: manual.New(now), loads: make(map[string]int), guards: make(map[*testenv.Guard]struct{}),
	}}
	t.Cleanup(func() { // the last one: nobody uses a value any more
		t.Helper()
		passed.report(t)
	})
	var err error
	if e.Redis, err = memory.New(memory.Config{MaxBytes: maxBytes, Now: e.inner.moved.Now, Limiter: e.inner}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Redis.Close() }) // nobody uses it any more
	guard, err := cacheguard.New(e.Redis, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if s := guard.Stats(); s.Intents > 0 && !s.Closed {
			t.Errorf("cacheguardtest: Done was not called of %d intents, or a write of them still runs: until they expire nothing is stored, and the keys stay as they were", s.Intents)
		}
		_ = guard.Close() // always nil
	})
	e.Guard = guard
	e.await("the local tier hears of invalidations", func(g *testenv.Guard) bool { return g.Listening() })
	return e
}

// Now returns the time of the environment's clock.
func (e *Env) Now() time.Time { return e.inner.moved.Now() }

// Advance moves the clock. First it waits until the values that callers already have are stored, which happens a moment
// later. Running loads go on.
func (e *Env) Advance(d time.Duration) {
	e.t.Helper()
	if d < 0 {
		e.t.Fatalf("cacheguardtest: Advance(%v): time does not go back", d)
	}
	e.await("all is stored", func(g *testenv.Guard) bool { return g.Storing() == 0 })
	for d > 0 {
		step := min(d, e.longestStep(d))
		e.inner.moved.Advance(step)
		e.renew()
		d -= step
	}
}

// longestStep is by how much the clock can move before a lease has to be renewed.
func (e *Env) longestStep(d time.Duration) time.Duration {
	for _, g := range e.inner.open() {
		if lease := g.Leases.Shortest(); lease > 0 {
			d = min(d, lease*9/10)
		}
	}
	return d
}

// renew renews the leases that are held. All Guards are on one client, so they have one keeper.
func (e *Env) renew() {
	for _, g := range e.inner.open() {
		g.Leases.RenewAll()
		return
	}
}

// Settle waits until nothing is under way: no load, not even in the background, unless it waits for
// the clock. Everything loaded is then stored. It fails the test after a minute.
func (e *Env) Settle() {
	e.t.Helper()
	e.awaitAll("nothing is under way", func(guards []*testenv.Guard) bool {
		working := -e.inner.moved.Waiting()
		for _, g := range guards {
			working += g.Working()
		}
		return working <= 0
	})
}

// Loads returns how many loads of the key have ended in the Guards of this environment. Each key that a GetMany loads
// counts. The count is exact once the Get has returned.
func (e *Env) Loads(key string) int { return e.inner.loadsOf(key) }

// Outage makes every request to Redis fail, or ends that. Outage(false) returns when the Guards use Redis again and
// have sent their pending invalidations, which can take a second or two. During an outage, messages of other Guards
// still arrive.
func (e *Env) Outage(on bool) {
	e.t.Helper()
	if on {
		e.inner.fail(errOutage)
		return
	}
	e.inner.fail(nil)
	e.await("Redis is used again", func(g *testenv.Guard) bool { return g.Recovered() })
}

// await waits until something is true of all Guards.
func (e *Env) await(what string, is func(*testenv.Guard) bool) {
	e.t.Helper()
	e.awaitAll(what, func(guards []*testenv.Guard) bool {
		for _, g := range guards {
			if !is(g) {
				return false
			}
		}
		return true
	})
}

func (e *Env) awaitAll(what string, is func([]*testenv.Guard) bool) {
	e.t.Helper()
	if is(e.inner.open()) {
		return
	}
	tick, end := time.NewTicker(time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer end.Stop()
	for {
		select {
		case <-tick.C:
			if is(e.inner.open()) {
				return
			}
		case <-end.C:
			e.t.Fatalf("cacheguardtest: waited %v until %s", patience, what)
		}
	}
}
