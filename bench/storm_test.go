//go:build !race

package bench

import (
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// TestStormCountsStayBounded holds waits that time out to costing those who stay nothing: with each of our locks, some thousand
// attempts a second that mostly fail leave no crowd of goroutines behind, do not queue in Redis, and hand the lock on all the same.
func TestStormCountsStayBounded(t *testing.T) {
	own := redistest.Start(t)
	for _, roundTrip := range []time.Duration{0, 4 * time.Millisecond} {
		o := *own.Client(t).Options()
		if roundTrip > 0 {
			away, err := distance.Apart(own.Addr(), roundTrip)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = away.Close() })
			o.Addr = away.Addr()
		}
		// a hundredth of what a lock held for so long can do at most: a busy machine does less, but not next to nothing
		held := scenario.Impetuous.Held + 2*roundTrip
		least := int64(scenario.Impetuous.Lasts / held / 100)
		for _, lib := range append(rivals.RWLocks[:len(rivals.RWLocks):len(rivals.RWLocks)], rivals.Locks...) {
			if !lib.Ours {
				continue
			}
			t.Run(lib.Name+", round trip "+roundTrip.String(), func(t *testing.T) {
				scripts := own.Commands()["evalsha"]
				was, err := scenario.Impetuous.Run(t.Context(), &o, roundTrip, lib)
				if err != nil {
					t.Fatal(err)
				}
				scripts = own.Commands()["evalsha"] - scripts
				t.Logf("%d of %d attempts had the lock, with %d scripts", was.Taken, was.Asked, scripts)
				if most := int64(3 * scenario.Impetuous.Callers); was.Goroutines > most {
					t.Errorf("%d goroutines more for %d callers, want at most %d", was.Goroutines, scenario.Impetuous.Callers, most)
				}
				if was.Taken < least {
					t.Errorf("%d of %d attempts had the lock, want %d", was.Taken, was.Asked, least)
				}
				if was.Unanswered > was.Taken/50 {
					t.Errorf("%d of %d releases were not answered in time", was.Unanswered, was.Taken)
				}
				if scripts > was.Asked {
					t.Errorf("%d scripts for %d attempts: most of them must not reach Redis", scripts, was.Asked)
				}
				if was.Patient > 2*time.Second {
					t.Errorf("a patient caller had the lock after %v", was.Patient)
				}
			})
		}
	}
}
