package bench

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

const (
	instances = 8
	callers   = 128 // of each instance
	rebuild   = 50 * time.Millisecond
)

// BenchmarkStampede has 8 instances with 128 callers each ask at once for a key that nobody has.
func BenchmarkStampede(b *testing.B) {
	for _, lib := range libraries {
		b.Run(lib.name, func(b *testing.B) {
			askers := byInstance(openAll(b, lib, instances), callers)
			warmUp(b, askers, lib.inboxes)
			var all figures
			for b.Loop() {
				all.add(measure(b, askers))
			}
			all.report(b)
		})
	}
}

// byInstance returns the instance of each caller. The callers of an instance are neighbours, because the scheduler
// starts neighbours together: in a process of their own they would not wait until those of others have started.
func byInstance(caches []cache, each int) []cache {
	var askers []cache
	for _, c := range caches {
		askers = append(askers, slices.Repeat([]cache{c}, each)...)
	}
	return askers
}

// stampede is what happens to one key that many ask for at the same moment.
type stampede struct {
	key      string
	value    []byte
	loads    atomic.Int64
	rebuilt  atomic.Int64    // when the first load was done, in nanoseconds since began
	answered []time.Duration // when each caller had its answer, since began
	began    time.Time
	spent    spending
}

var stampedes atomic.Int64

// measure runs a stampede on a key of its own.
func measure(b *testing.B, askers []cache) *stampede {
	b.Helper()
	key := fmt.Sprintf("stampede:%d", stampedes.Add(1))
	s := &stampede{key: key, value: valueOf(key), answered: make([]time.Duration, len(askers)), began: time.Now()}
	before := countNow()
	err := together(b.Context(), len(askers), func(ctx context.Context, i int) error {
		err := askers[i].get(ctx, s.key, s.value, s.load)
		s.answered[i] = time.Since(s.began)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	s.spent = countNow().since(before)
	return s
}

func (s *stampede) load() ([]byte, error) {
	s.loads.Add(1)
	time.Sleep(rebuild)
	s.rebuilt.CompareAndSwap(0, int64(time.Since(s.began)))
	return s.value, nil
}

// delays are the times from the end of the first rebuild to each answer, in order.
func (s *stampede) delays() []time.Duration {
	d := make([]time.Duration, len(s.answered))
	for i, at := range s.answered {
		d[i] = max(at-time.Duration(s.rebuilt.Load()), 0)
	}
	slices.Sort(d)
	return d
}

// warmUp runs stampedes until one opens no connection, teaches the server no script and wakes as many waiting inboxes
// by message as it should.
func warmUp(b *testing.B, askers []cache, inboxes int64) {
	b.Helper()
	const atLeast, atMost = 2, 50
	var did map[string]int64
	for i := range atMost {
		did = measure(b, askers).spent.commands
		setUp := did["hello"] + did["subscribe"] + did["client|tracking"] + did["script|load"]
		if i+1 >= atLeast && setUp == 0 && (inboxes == 0 || did["publish"] >= inboxes && did["eval"] == 0) {
			return
		}
	}
	b.Fatalf("not warm after %d stampedes; the last one: %v", atMost, did)
}
