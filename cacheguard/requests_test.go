package cacheguard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// gauge counts what is under way.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
}

// gauges is a hook that counts the scripts under way, with the looks before them, and the requests that carry them.
type gauges struct{ scripts, requests gauge }

func (*gauges) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gauges) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer g.count(cmd)()
		return next(ctx, cmd)
	}
}

func (g *gauges) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer g.count(cmds...)()
		return next(ctx, cmds)
	}
}

func (g *gauges) count(cmds ...redis.Cmder) (done func()) {
	if name := cmds[0].Name(); name != "evalsha" && name != "exists" {
		return func() {}
	}
	g.requests.add(1)
	g.scripts.add(int64(len(cmds)))
	return func() {
		g.requests.add(-1)
		g.scripts.add(int64(-len(cmds)))
	}
}

func TestManyMissingKeysShareRequests(t *testing.T) {
	t.Parallel()
	const n, requests = 1000, 32
	rdb := shared.Client(t)
	under := new(gauges)
	rdb.AddHook(under)
	f := newFleetOn(t, rdb, Config{}, rdb)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			key := fmt.Sprint("k", i)
			_, how, err := get(context.Background(), f.guards[0], key, returns(i))
			if err != nil || how != Loaded {
				t.Errorf("%s: %v, %v", key, how, err)
			}
		})
	}
	all.Wait()
	if most := under.scripts.most.Load(); most < 2 {
		t.Errorf("%d scripts at once", most)
	}
	if most := under.requests.most.Load(); most > requests {
		t.Errorf("%d requests at once", most)
	}
}

const requests = 4 // under way at once

// The client waits for its own time-outs, which may be long or missing. Other requests do not.
func TestConnectionsThatHangDoNotKeepScriptsFromBeingSent(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	rdb := proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = -1 })
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: brisk}, rdb)
	f.events.quiet = true
	warm(t, f)
	var enough atomic.Bool // no number of Times: two of them in one request hang as one
	hanging := proxy.On(func(args []string) bool { return steps["acquire"](args) && !enough.Load() }, redistest.HoldReply)
	defer hanging.Release()
	g := f.guards[0]
	var all []<-chan reply[int]
	for i := range requests {
		for hanging.Count() <= i { // on a busy machine a Get may do without Redis before
			got := async(g, fmt.Sprint("a", len(all)), returns(len(all)))
			all = append(all, got)
			redistest.Await(t, "it hangs too", func() bool { return hanging.Count() > i || len(got) == 1 })
		}
	}
	enough.Store(true)
	for i, got := range all {
		want(t, got, i)
	}
	redistest.Await(t, "the breaker is closed", func() bool {
		mustGet(t, g, "b", returns(0))
		return !g.breakers.Of(g.keys.ValueKey("b")).IsOpen()
	})
	for i := range requests { // all lanes
		got := async(g, fmt.Sprint("c", i), returns(i))
		redistest.Await(t, "a Get has its value", func() bool { return len(got) == 1 })
		want(t, got, i)
	}
}

func TestWhoWaitsForATurnDoesWithoutWhenRedisHangs(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{}, redistest.AsksAgain)
	f.events.quiet = true
	f.listening()
	proxy.BlackHole(true)
	defer proxy.Cut()
	defer proxy.BlackHole(false)
	var all sync.WaitGroup
	for i := range 4 * 64 {
		all.Go(func() {
			if v := mustGet(t, f.guards[0], fmt.Sprint("k", i), returns(i)); v != i {
				t.Errorf("got %d, want %d", v, i)
			}
		})
	}
	all.Wait()
}
