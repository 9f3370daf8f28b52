package bench

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// contest is some contenders that take turns with one lock.
type contest struct {
	lockers []locker      // one for each contender
	rounds  int           // of each contender
	held    time.Duration // a lock, in each round
	pause   time.Duration // before a contender asks again

	inside   atomic.Int64
	unlocked atomic.Int64 // when the last unlock began, in nanoseconds since began
	began    time.Time
	delays   []time.Duration // from the beginning of an unlock to the next holder; the lock guards it
	spent    spending
}

var contests atomic.Int64

func (c *contest) run(b *testing.B) {
	b.Helper()
	name := fmt.Sprintf("contest:%d", contests.Add(1))
	c.began = time.Now()
	before := countNow()
	err := together(b.Context(), len(c.lockers), func(ctx context.Context, i int) error {
		for range c.rounds {
			if err := c.round(ctx, c.lockers[i], name); err != nil {
				return err
			}
			time.Sleep(c.pause)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	c.spent = countNow().since(before)
	slices.Sort(c.delays)
}

func (c *contest) round(ctx context.Context, k locker, name string) error {
	unlock, err := k.lock(ctx, name)
	if err != nil {
		return err
	}
	now := time.Since(c.began)
	if n := c.inside.Add(1); n != 1 {
		return fmt.Errorf("%d have the lock", n)
	}
	if at := c.unlocked.Load(); at != 0 {
		c.delays = append(c.delays, now-time.Duration(at))
	}
	time.Sleep(c.held)
	c.inside.Add(-1)
	c.unlocked.Store(int64(time.Since(c.began)))
	return unlock()
}

// BenchmarkHandOver measures from the beginning of an unlock to the next holder. Each contender has a client of its own, as
// each process has. It pauses before it asks again, for as long as redislock does between two attempts, so that it does not
// get the lock back before those who wait for it have tried. The others hold the lock for longer than that together, so
// that somebody always waits.
func BenchmarkHandOver(b *testing.B) {
	for _, contenders := range []int{2, 16} {
		for _, lib := range lockLibraries {
			b.Run(fmt.Sprintf("%d contenders/%s", contenders, lib.name), func(b *testing.B) {
				lockers := make([]locker, contenders)
				for i := range lockers {
					lockers[i] = lib.open(b)
				}
				const pause = 100 * time.Millisecond
				held := pause * 3 / 2 / time.Duration(contenders-1)
				warm := contest{lockers: lockers, rounds: 2, held: held, pause: pause}
				warm.run(b)
				var all []time.Duration
				for b.Loop() {
					c := contest{lockers: lockers, rounds: 5, held: held, pause: pause}
					c.run(b)
					all = append(all, c.delays...)
				}
				slices.Sort(all)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(len(all)), "hand-overs")
				b.ReportMetric(millis(percentile(all, 50)), "p50-ms")
				b.ReportMetric(millis(percentile(all, 99)), "p99-ms")
			})
		}
	}
}

// BenchmarkLockCrowd counts what 64 contenders ask of Redis for each acquisition.
func BenchmarkLockCrowd(b *testing.B) {
	const contenders = 64
	for _, processes := range []int{1, 8, 64} {
		for _, lib := range lockLibraries {
			b.Run(fmt.Sprintf("%d clients/%s", processes, lib.name), func(b *testing.B) {
				var lockers []locker
				for range processes {
					lockers = append(lockers, slices.Repeat([]locker{lib.open(b)}, contenders/processes)...)
				}
				const held, pause = 3 * time.Millisecond, 2 * time.Millisecond
				warm := contest{lockers: lockers, rounds: 1, held: held, pause: pause}
				warm.run(b)
				var requests, commands, computed []float64
				for b.Loop() {
					c := contest{lockers: lockers, rounds: 5, held: held, pause: pause}
					before := serverCPU(b)
					c.run(b)
					computed = append(computed, (serverCPU(b)-before)/(contenders*5))
					requests = append(requests, float64(c.spent.requests)/(contenders*5))
					commands = append(commands, float64(c.spent.total())/(contenders*5))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(mean(requests), "requests/acquisition")
				b.ReportMetric(mean(commands), "commands/acquisition")
				b.ReportMetric(mean(computed), "server-cpu-µs/acquisition")
			})
		}
	}
}
