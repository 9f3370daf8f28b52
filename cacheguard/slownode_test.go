package cacheguard

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// One node of three is late, and then known to be slow: its keys are loaded beside it, in single Gets and in GetMany, and the others are hits.
func TestKeysOfASlowNodeAreLoadedBesideItAndTheOthersAreHits(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	proxy := redistest.StartProxy(t, c.Node(0).Addr())
	throughProxy := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == c.Node(0).Addr() {
			addr = proxy.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	f := newFleetOn(t, c.Client(t), Config{HedgeAfter: soon, RedisTimeout: bearing}, c.Client(t, func(o *redis.ClusterOptions) {
		o.Dialer, o.ReadTimeout = throughProxy, bearing // it waits as long as the Guard does
	}), c.Client(t))
	g := f.guards[0]
	f.guards[1].cfg.HedgeAfter = off // it looks around
	g.loaders.cost.Took(time.Hour)   // nothing is slow on its own
	keys := numbered(0, 30)
	ofSlow := func(key string) bool { return g.partOf(key) < breaker.Parts/3 } // masters have equal shares, in order
	for _, key := range keys {
		mustGet(t, f.guards[1], key, returns("stored"))
	}
	single, many := keys[:15], keys[15:] // a key is loaded once while a Redis that is not known to be slow answers nothing
	rule := proxy.On(reading, redistest.HoldReply)
	look := func(when string) {
		t.Helper()
		var all sync.WaitGroup
		for _, key := range single {
			load, answer := unwanted[string](t), "stored"
			if ofSlow(key) {
				load, answer = returns("loaded"), "loaded"
			}
			all.Go(func() { expect.Equal(t, key+when, mustGet(t, g, key, load), answer) })
		}
		all.Wait()
		got, err := GetMany(t.Context(), g, many, func(_ context.Context, missing []string) (map[string]string, error) {
			loaded := make(map[string]string)
			for _, key := range missing {
				if loaded[key] = "loaded"; !ofSlow(key) {
					t.Error(key, "is loaded, and its node is quick", when)
				}
			}
			return loaded, nil
		})
		expect.Equal(t, "error"+when, err, nil)
		for _, key := range many {
			if want := map[bool]string{true: "loaded", false: "stored"}[ofSlow(key)]; got[key] != want {
				t.Errorf("%s%s: %q of many, want %q", key, when, got[key], want)
			}
		}
	}
	look(", late")
	expect.Equal(t, "parts that are slow", g.Stats().SlowParts, 0)
	hedged := g.Stats().Hedged

	measured := func(took time.Duration) {
		for part := range breaker.Parts {
			of := time.Millisecond
			if part < breaker.Parts/3 {
				of = took
			}
			for range 100 {
				g.breakers.Breaker(part).Took(of) // the median, whatever replies take on a busy machine
			}
		}
	}
	redistest.Await(t, "its parts are slow, and no others", func() bool {
		g.loaders.cost.Took(time.Second) // more than replies take on a busy machine
		measured(time.Minute)
		return g.Stats().SlowParts == breaker.Parts/3
	})
	look(", slow")
	expect.Equal(t, "its keys were loaded", g.Stats().Hedged > hedged, true)

	rule.Remove()
	redistest.Await(t, "no part is slow", func() bool {
		measured(time.Millisecond)
		return g.Stats().SlowParts == 0
	})
	for _, key := range slices.DeleteFunc(keys, func(key string) bool { return !ofSlow(key) }) {
		expect.Equal(t, key, mustGet(t, g, key, unwanted[string](t)), "stored")
	}
}
