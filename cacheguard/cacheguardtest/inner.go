package cacheguardtest

import (
	"maps"
	"slices"
	"sync"

	"github.com/cacheguard/go/internal/cache/testenv"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/testing/manual"
)

// inner is what the Guards of a test know of its environment. It is the Limiter of the test's client, which asks it
// before each request.
type inner struct {
	*values

	moved *manual.Clock

	mu     sync.Mutex
	outage error
	loads  map[string]int
	guards map[*testenv.Guard]struct{}
}

var _ testenv.Env = (*inner)(nil)

// Clock is the clock of the test.
func (e *inner) Clock() clock.Clock { return e.moved.Clock() }

// Allow refuses requests while there is an outage.
func (e *inner) Allow() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outage
}

// ReportResult makes it a redis.Limiter.
func (e *inner) ReportResult(error) {}

// fail makes requests fail with the error; nil ends the outage.
func (e *inner) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outage = err
}

// Loaded counts a load of the key.
func (e *inner) Loaded(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loads[key]++
}

func (e *inner) loadsOf(key string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loads[key]
}

// Join adds a Guard, until leave is called.
func (e *inner) Join(g *testenv.Guard) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.guards[g] = struct{}{}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.guards, g)
	}
}

// open returns the Guards that are open.
func (e *inner) open() []*testenv.Guard {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.guards))
}
