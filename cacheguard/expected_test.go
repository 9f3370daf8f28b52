package cacheguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// expectingMisses is a fleet whose first instance has missed so often that it expects to.
func expectingMisses(t *testing.T, a arena, cfg Config) *fleet {
	t.Helper()
	f := newFleet(t, a, 1, cfg).listening()
	warm(t, f)
	for i := 0; !f.guards[0].expected.Expected(); i++ {
		mustGet(t, f.guards[0], fmt.Sprint("missed", i), returns("v"))
	}
	return f
}

func TestAMissThatIsExpectedIsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := expectingMisses(t, a, Config{})
	misses := 0
	requests := s.FewestReads(3, func() {
		misses++
		mustGet(t, f.guards[0], fmt.Sprint("k", misses), returns("v"))
	})
	expect.Equal(t, "requests", requests, 3) // acquire with a read of the epochs, fill
}

func TestAHitWhereAMissIsExpectedIsStillAHit(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := expectingMisses(t, a, Config{})
	g := f.guards[0]
	for i := 0; g.expected.Expected(); i++ {
		v, how, err := get(context.Background(), g, fmt.Sprint("missed", i), unwanted[string](t))
		if v != "v" || how != Hit || err != nil {
			t.Fatalf("got %q, %q, %v", v, how, err)
		}
	}
	wantTraffic(t, s, map[string]int64{"mget": 1}, func(int) func() {
		return func() { mustGet(t, g, "missed0", unwanted[string](t)) }
	})
}

func TestAStaleValueWhereAMissIsExpectedIsServedAndReplaced(t *testing.T) {
	t.Parallel()
	f := expectingMisses(t, standalone(t), Config{TTL: 20 * time.Millisecond, StaleFor: time.Hour, Jitter: -1})
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	redistest.Await(t, "the value is stale", func() bool {
		v, how, err := get(context.Background(), g, "k", returns("new"))
		return err == nil && v == "old" && how == Stale
	})
	redistest.Await(t, "it is replaced", func() bool { return mustGet(t, g, "k", returns("new")) == "new" })
}
