package cacheguard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/slots"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Thousands of cold keys want to be loaded, and then a hot one.
func TestColdKeysDoNotStarveAHotOneNorExceedMaxLoads(t *testing.T) {
	t.Parallel()
	const callers, maxLoads = 50, 8
	cold := expect.Samples(2_000, 10_000)
	f := newFleet(t, standalone(t), 1, Config{MaxLoads: maxLoads, RedisTimeout: time.Minute}) // that many at once are slow
	g := f.guards[0]
	var running, most, loads atomic.Int64
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open) // or Close would wait for ever
	load := func(context.Context) (int, error) {
		now := running.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		defer running.Add(-1)
		loads.Add(1)
		<-gate
		return 1, nil
	}
	var all sync.WaitGroup
	ask := func(key string, load func(context.Context) (int, error)) {
		all.Go(func() {
			if v, err := Get(context.Background(), g, key, load); err != nil || v != 1 {
				t.Error(key, v, err)
			}
		})
	}
	for i := range cold {
		ask(fmt.Sprint("cold", i), load)
	}
	redistest.Await(t, "the cold ones wait", func() bool { return g.Stats().Queued == cold-maxLoads })
	var before atomic.Int64
	for range callers {
		ask("hot", func(ctx context.Context) (int, error) {
			before.Store(loads.Load())
			return load(ctx)
		})
	}
	awaitCallers[int](f, 0, "hot", callers)
	redistest.Await(t, "the hot one waits", func() bool { return g.Stats().Queued == cold-maxLoads+1 })
	limit := int64(2*cold/slots.Searched + 2*maxLoads)
	for n := int64(maxLoads); before.Load() == 0 && n <= limit; n++ { // one slot after the other
		gate <- struct{}{}
		redistest.Await(t, "another load begins", func() bool { return loads.Load() > n })
	}
	if before.Load() == 0 {
		t.Errorf("%d loads began before that of the hot key", limit)
	}
	open()
	all.Wait()
	expect.Equal(t, "loads", loads.Load(), int64(cold)+1)
	if most.Load() > maxLoads {
		t.Errorf("%d loads at once", most.Load())
	}
}
