package cacheguard

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// One node of three is slow: its keys are loaded, in single Gets and in GetMany, and the others are hits, which no busy machine makes late.
func TestKeysOfASlowNodeAreLoadedAndTheOthersAreHits(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	proxy := redistest.StartProxy(t, c.Node(0).Addr())
	throughProxy := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == c.Node(0).Addr() {
			addr = proxy.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	f := newFleetOn(t, c.Client(t), Config{HedgeAfter: time.Hour, RedisTimeout: bearing, MaxLoads: 100}, c.Client(t, func(o *redis.ClusterOptions) {
		o.Dialer, o.ReadTimeout = throughProxy, bearing // it waits as long as the Guard does
	}), c.Client(t))
	g := f.guards[0]
	f.guards[1].cfg.HedgeAfter = off // on a busy machine, it would load first, and store nothing
	keys := numbered(0, 30)
	ofSlow := func(key string) bool { return g.partOf(key) < breaker.Parts/3 } // masters have equal shares, in order
	for _, key := range keys {
		mustGet(t, f.guards[1], key, returns("stored"))
		f.stored()
	}
	measured := func(took time.Duration) {
		for part := range breaker.Parts {
			of := time.Second // less than a load is said to cost, and more than a reply takes on a busy machine
			if part < breaker.Parts/3 {
				of = took
			}
			takes(g.breakers.Breaker(part), of) // the median, whatever replies take on a busy machine
		}
	}
	costly := func() {
		takes(&g.loaders.cost, 7*time.Second) // more than replies take on a busy machine
	}
	redistest.Await(t, "its parts are slow, and no others", func() bool {
		costly()
		measured(time.Minute)
		return g.Stats().SlowParts == breaker.Parts/3
	})
	rule := proxy.On(reading, redistest.HoldReply)
	answer := func(key string) string { return map[bool]string{true: "loaded", false: "stored"}[ofSlow(key)] }
	for _, key := range keys[:15] {
		redistest.Await(t, key+" is "+answer(key), func() bool { // once no reply took longer than loads are said to
			costly() // a load that ran cost nothing, so any reply would be slow
			measured(time.Minute)
			return mustGet(t, g, key, returns("loaded")) == answer(key)
		})
	}
	redistest.Await(t, "many are loaded or stored, as their nodes are", func() bool {
		costly()
		measured(time.Minute)
		got, err := GetMany(t.Context(), g, keys[15:], func(_ context.Context, missing []string) (map[string]string, error) {
			loaded := make(map[string]string)
			for _, key := range missing {
				loaded[key] = "loaded"
			}
			return loaded, nil
		})
		expect.Equal(t, "error", err, nil)
		return !slices.ContainsFunc(keys[15:], func(key string) bool { return got[key] != answer(key) })
	})
	rule.Remove()
	redistest.Await(t, "no part is slow", func() bool {
		costly() // a reply that is late on a busy machine is waited for
		measured(time.Second)
		return g.Stats().SlowParts == 0
	})
	for _, key := range slices.DeleteFunc(keys, func(key string) bool { return !ofSlow(key) }) {
		redistest.Await(t, key+" is a hit", func() bool {
			costly()
			measured(time.Second)
			_, how, err := get(t.Context(), g, key, returns("stored"))
			return err == nil && how == Hit
		})
	}
}

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
