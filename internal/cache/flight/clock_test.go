package flight_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/cache/flight"
)

func TestClockStandsStillBetweenTicks(t *testing.T) {
	t.Parallel()
	var c flight.Clock
	if a, b := c.Now(), c.Now(); a != b {
		t.Errorf("Now() = %d, then %d", a, b)
	}
	if before, tick := c.Now(), c.Tick(); tick <= before {
		t.Errorf("Tick() = %d after Now() = %d", tick, before)
	}
}

func TestCallThatBeginsAfterATickIsNotBeforeIt(t *testing.T) {
	t.Parallel()
	var c flight.Clock
	if tick, now := c.Tick(), c.Now(); now < tick {
		t.Errorf("Now() = %d after Tick() = %d", now, tick)
	}
}

// Whatever one goroutine has seen of the clock, the ticks that any goroutine begins afterwards are later.
func TestTickIsLaterThanAllThatReturnedBeforeIt(t *testing.T) {
	t.Parallel()
	const workers, rounds = 8, 2000
	var c flight.Clock
	var seen atomic.Uint64 // the latest moment anybody has been told
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range rounds {
				raise(&seen, c.Now())
				before := seen.Load()
				tick := c.Tick()
				if tick <= before {
					t.Errorf("Tick() = %d, after %d had been returned", tick, before)
				}
				raise(&seen, tick)
				before = seen.Load()
				if now := c.Now(); now < before {
					t.Errorf("Now() = %d, after %d had been returned", now, before)
				}
			}
		})
	}
	all.Wait()
	if got := c.Now(); got != workers*rounds {
		t.Errorf("Now() = %d after %d ticks: two of them were the same", got, workers*rounds)
	}
}

func raise(to *atomic.Uint64, v uint64) {
	for old := to.Load(); old < v && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}
