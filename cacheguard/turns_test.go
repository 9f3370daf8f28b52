package cacheguard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

// gauge counts what is under way.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) {
	now := g.now.Add(n)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
}

// gauges is a hook that counts the scripts under way, and the requests that have them.
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
	if cmds[0].Name() != "evalsha" {
		return func() {}
	}
	g.requests.add(1)
	g.scripts.add(int64(len(cmds)))
	return func() {
		g.requests.add(-1)
		g.scripts.add(int64(-len(cmds)))
	}
}

func TestManyMissingKeysTakeTurnsInAskingForTheirLeases(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	under := new(gauges)
	rdb.AddHook(under)
	f := newFleetOn(t, rdb, Config{}, rdb)
	var all sync.WaitGroup
	for i := range 20 * maxTurns {
		all.Go(func() {
			key := fmt.Sprint("k", i)
			_, how, err := get(context.Background(), f.guards[0], key, returns(i))
			if err != nil || how != Loaded {
				t.Errorf("%s: %v, %v", key, how, err)
			}
		})
	}
	all.Wait()
	// Clean-ups take no turns, and there should be none.
	if most := under.scripts.most.Load(); most < 2 || most > maxTurns {
		t.Errorf("%d scripts at once", most)
	}
	if most := under.requests.most.Load(); most > maxRequests {
		t.Errorf("%d requests at once", most)
	}
}

func TestAPipelineThatIsLostIsOneFailure(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: 2 * time.Second, LeaseTTL: time.Minute})
	f.events.quiet = true
	f.listening()
	g := f.guards[0]
	var all sync.WaitGroup
	load := func(name string, n int) {
		for i := range n {
			all.Go(func() {
				equal(t, "value", mustGet(t, g, fmt.Sprint(name, i), returns(i)), i)
			})
		}
	}
	taken := proxy.On(steps["acquire"], redistest.HoldReply).Times(maxRequests)
	load("a", maxRequests)
	redistest.Await(t, "all requests are taken", func() bool { return taken.Count() == maxRequests })
	lost := proxy.On(steps["acquire"], redistest.SwallowReply).Times(1) // and so of all that come after it on its connection
	before := proxy.Commands()["evalsha"]
	load("b", maxCalls)
	redistest.Await(t, "the others wait", func() bool { return f.gathered() == maxCalls })
	taken.Release()
	redistest.Await(t, "the pipeline is sent", func() bool { return lost.Count() == 1 })
	all.Wait()
	redistest.Await(t, "they were sent, and released when no reply came", func() bool {
		return proxy.Commands()["evalsha"]-before >= 2*maxCalls
	})
	equal(t, "open", g.health.Of(g.redisKey("b0")).IsOpen(), false)
}

// It sends one request at a time, and could not wait for five of them.
func TestOfAGetManyAllCallsOfALostPipelineAreFailures(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: 200 * time.Millisecond})
	f.events.quiet = true
	f.listening()
	defer proxy.On(steps["acquire"], redistest.Hold).Remove()
	var keys []string
	for i := range 4 * maxRequests {
		keys = append(keys, fmt.Sprint("k", i))
	}
	g := f.guards[0]
	opened := g.health.Of(g.redisKey("k0")).Opened()
	got, err := GetMany(t.Context(), g, keys, func(_ context.Context, keys []string) (map[string]int, error) {
		return map[string]int{keys[0]: 1}, nil
	})
	if err != nil || len(got) == 0 {
		t.Error(got, err)
	}
	select {
	case <-opened:
	default:
		t.Error("the breaker did not open")
	}
}

// gathered is how many scripts of the first guard wait for a request.
func (f *fleet) gathered() int { return int(f.guards[0].calls[0].Waiting()) }

// slow is a hook that makes each request with scripts take its time.
type slow time.Duration

func (slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			<-time.After(time.Duration(s))
		}
		return next(ctx, cmd)
	}
}

func (s slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return distant(s).ProcessPipelineHook(next)
}

// A request that gathers, and the one before it, take longer than RedisTimeout together, but neither of them does.
func TestTheWaitForARequestIsNotOnTheTimeOfAScript(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: 2 * time.Second}, rdb)
	warm(t, f)
	under := new(gauges)
	rdb.AddHook(under)
	rdb.AddHook(slow(1200 * time.Millisecond))
	var all sync.WaitGroup
	load := func(name string, n int) {
		for i := range n {
			all.Go(func() {
				_, how, err := get(context.Background(), f.guards[0], fmt.Sprint(name, i), returns(i))
				if err != nil || how != Loaded {
					t.Errorf("%s%d: %v, %v", name, i, how, err)
				}
			})
		}
	}
	load("a", maxRequests)
	redistest.Await(t, "all requests are taken", func() bool { return under.requests.most.Load() == maxRequests })
	load("b", 2*maxCalls)
	all.Wait()
	equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
}

// The client waits for its own time-outs, which may be long or none. Others do not.
func TestConnectionsThatHangDoNotKeepScriptsFromBeingSent(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	rdb := proxy.Client(t, func(o *redis.Options) { o.ReadTimeout = -1 })
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: 300 * time.Millisecond}, rdb)
	f.events.quiet = true
	warm(t, f)
	hanging := proxy.On(steps["acquire"], redistest.HoldReply).Times(maxRequests)
	defer hanging.Release()
	var all sync.WaitGroup
	for i := range maxRequests {
		all.Go(func() { equal(t, "value", mustGet(t, f.guards[0], fmt.Sprint("a", i), returns(i)), i) })
	}
	all.Wait()
	equal(t, "hanging", hanging.Count(), maxRequests)
	g := f.guards[0]
	redistest.Await(t, "the breaker is closed", func() bool {
		mustGet(t, g, "b", returns(0))
		return !g.health.Of(g.redisKey("b")).IsOpen()
	})
	for i := range maxRequests { // all lanes
		got := async(g, fmt.Sprint("c", i), returns(i))
		redistest.Await(t, "a Get has its value", func() bool { return len(got) == 1 })
		want(t, got, i)
	}
}

func TestWhoWaitsForATurnDoesWithoutWhenRedisHangs(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	f.events.quiet = true
	f.listening()
	proxy.BlackHole(true)
	defer proxy.Cut()
	defer proxy.BlackHole(false)
	var all sync.WaitGroup
	for i := range 4 * maxTurns {
		all.Go(func() {
			if v := mustGet(t, f.guards[0], fmt.Sprint("k", i), returns(i)); v != i {
				t.Errorf("got %d, want %d", v, i)
			}
		})
	}
	all.Wait()
}

func TestWaitTimeoutBoundsTheWaitForATurnToo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{WaitTimeout: 50 * time.Millisecond}).listening()
	db := newSource("theirs")
	theirs := async(f.guards[1], "k", db.load)
	<-db.begun
	g := f.guards[0]
	for range maxTurns { // nobody gives a turn back
		g.turns[g.health.Part(g.redisKey("k"))] <- struct{}{}
	}
	equal(t, "without a turn", mustGet(t, g, "k", returns("ours")), "ours")
	close(db.release)
	want(t, theirs, "theirs")
}
