package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// slowTo makes the guard's part slow, whatever Redis takes, until the test ends.
func slowTo(t *testing.T, g *Guard) {
	t.Helper()
	g.loaders.cost.Took(time.Millisecond)
	part, ends, ended := g.breakers.Breaker(0), make(chan struct{}), make(chan struct{})
	go func() { // owner: the test; stop: ends; joined at its end
		defer close(ended)
		for tick := time.Tick(5 * time.Millisecond); ; {
			select {
			case <-tick:
			case <-ends:
				return
			}
			takes(part, time.Second)
		}
	}()
	t.Cleanup(func() {
		close(ends)
		<-ended
	})
	redistest.Await(t, "slow", func() bool { return g.Stats().SlowParts == 1 })
}

// slotWhileAsked is the only slot, which nobody has while Redis is asked for leases.
func slotWhileAsked(t *testing.T, g *Guard, asked *redistest.Rule) limit.Slot {
	t.Helper()
	redistest.Await(t, "leases are asked for", func() bool { return asked.Count() > 0 })
	s := g.loaders.limits.Try(t.Context(), limit.Need{})
	if s.IsNone() {
		t.Fatal("the slot is taken while Redis is asked")
	}
	return s
}

// Where Redis is slower than loads, a slot whose load waits for its lease would stand idle.
func TestALoadTakesItsSlotOnceASlowRedisHasGivenItsLease(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: off, MaxLoads: 1})
	g := f.guards[0]
	slowTo(t, g)
	asked := proxy.On(scriptOf("acquire"), redistest.Hold)
	defer asked.Remove()
	first := async(g, "first", returns("first"))
	s := slotWhileAsked(t, g, asked)
	asked.Remove()
	redistest.Await(t, "there is a lease", func() bool { return f.exists(f.lease("first")) })
	redistest.Await(t, "the load waits for the slot", func() bool { return g.Stats().Queued == 1 })
	g.loaders.limits.Free(s)
	want(t, first, "first")
	redistest.Await(t, "stored", func() bool { return f.exists(f.value("first")) })
}

// The lease of a call that gives up while it waits for a slot is given back.
func TestALeaseWithoutASlotIsGivenBackByACallThatGivesUp(t *testing.T) {
	t.Parallel()
	f, _ := keptWaiting(t, Config{HedgeAfter: off, MaxLoads: 1})
	g := f.guards[0]
	slowTo(t, g)
	s := g.loaders.limits.Try(t.Context(), limit.Need{})
	defer g.loaders.limits.Free(s)
	ctx, leave := context.WithCancel(t.Context())
	call := asyncCtx(ctx, g, "k", unwanted[string](t))
	redistest.Await(t, "the load waits for the slot", func() bool { return g.Stats().Queued == 1 })
	expect.Equal(t, "there is a lease", f.exists(f.lease("k")), true)
	leave()
	expect.Equal(t, "gave up", errors.Is((<-call).err, context.Canceled), true)
	redistest.Await(t, "the lease is given back", func() bool { return !f.exists(f.lease("k")) })
}

// In a part that is slow, a load that takes long is no reason not to ask Redis.
func TestAGetWhoseLoadHangsHasWhatASlowRedisHas(t *testing.T) {
	t.Parallel()
	f, _ := keptWaiting(t, Config{HedgeAfter: 2 * soon, LoadTimeout: bearing})
	g := f.guards[0]
	mustGet(t, g, "k", returns("stored"))
	slowTo(t, g)
	expect.Equal(t, "from Redis", mustGet(t, g, "k", func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}), "stored")
}
