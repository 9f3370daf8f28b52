package cacheguard

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
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
			expect.Returns(t, i, Loaded, nil)(get(context.Background(), f.guards[0], fmt.Sprint("k", i), returns(i)))
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
			expect.Equal(t, "value", mustGet(t, f.guards[0], fmt.Sprint("k", i), returns(i)), i)
		})
	}
	all.Wait()
}

// onServer is a server of the test's own, whose counters it can read.
func onServer(t *testing.T) (arena, *redistest.Server) {
	s := redistest.Start(t)
	return arena{client: func(tb testing.TB) client { return s.Client(tb) }}, s
}

// traffic returns what the server ran during f, but for what connections and subscriptions send when they begin.
func traffic(s *redistest.Server, f func()) map[string]int64 {
	before := s.Commands()
	f()
	diff := make(map[string]int64)
	for name, n := range s.Commands() {
		if n -= before[name]; n > 0 {
			diff[name] = n
		}
	}
	for _, name := range []string{"hello", "subscribe", "script|load", "eval", "exists", "hkeys", "pttl"} { // also what Guards do by the clock
		delete(diff, name)
	}
	return diff
}

// wantTraffic wants that what prepare returns can be done with this traffic: what Guards do by the clock, as probes, comes on top now and
// then, and on a busy machine often.
func wantTraffic(t *testing.T, s *redistest.Server, want map[string]int64, prepare func(try int) func()) {
	t.Helper()
	var got map[string]int64
	for try := 0; try < 20 && !maps.Equal(got, want); try++ {
		got = traffic(s, prepare(try))
	}
	if !maps.Equal(got, want) {
		t.Errorf("commands: %v, want %v", got, want)
	}
}

// warm makes the server know the scripts, and the guards what they read once.
func warm(t *testing.T, f *fleet) {
	for _, g := range f.guards {
		mustGet(t, g, "warm", returns("v"))
		mustInvalidate(t, g, "warm")
	}
}

func TestAHitIsOneMGETOfTheValueAndItsEpochs(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{}).listening()
	mustGet(t, f.guards[0], "k", returns("v"))
	wantTraffic(t, s, map[string]int64{"mget": 1}, func(int) func() {
		return func() { mustGet(t, f.guards[0], "k", unwanted[string](t)) }
	})
}

func TestAnUncontendedLoadIsThreeRequestsAndPublishesNothing(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{}).listening()
	warm(t, f)
	loads := 0
	load := func() {
		loads++
		mustGet(t, f.guards[0], fmt.Sprint("k", loads), returns("v"))
	}
	wantTraffic(t, s, map[string]int64{
		"mget": 1, "evalsha": 2, // the read; acquire, which sees that nothing is there (EXISTS, which is not counted) and takes the lease; fill
		"hset": 1, "pexpire": 1, "time": 2, "hgetall": 1, "set": 1, "del": 1,
	}, func(int) func() { return load })
	expect.Equal(t, "requests", s.FewestReads(3, load), 3)
}

func TestAWaitingInstanceMakesTwoRequestsAndIsPushedTheValue(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 2, Config{}).listening()
	warm(t, f)
	fill := map[string]int64{"evalsha": 1, "hgetall": 1, "time": 1, "set": 1, "del": 1, "publish": 1}
	wantTraffic(t, s, fill, func(try int) func() {
		db, key := newSource("v"), fmt.Sprint("k", try)
		first := async(f.guards[0], key, db.load)
		<-db.begun
		before := s.Commands()["get"]
		second := async(f.guards[1], key, db.load)
		f.awaitRegistered(key, 1)
		redistest.Await(t, "the one that waits has read its epoch", func() bool { return s.Commands()["get"]-before >= 2 }) // acquire has one, too
		return func() {
			close(db.release)
			want(t, first, "v")
			want(t, second, "v")
		}
	})
}

func TestALargeValueIsReadByThoseWhoWaited(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	large := bytes.Repeat([]byte("x"), 5000)
	db := newSource("v")
	load := func(ctx context.Context) ([]byte, error) {
		_, err := db.load(ctx)
		return large, err
	}
	first := async(f.guards[0], "k", load)
	<-db.begun
	second := async(f.guards[1], "k", load)
	f.awaitRegistered("k", 1)
	close(db.release)
	expect.Equal(t, "size here", len((<-first).value), len(large))
	expect.Equal(t, "size there", len((<-second).value), len(large))
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

// expectingMisses is a fleet whose first instance has missed so often that it expects to.
func expectingMisses(t *testing.T, a arena, cfg Config) *fleet {
	t.Helper()
	f := newFleet(t, a, 1, cfg).listening()
	warm(t, f)
	for i := 0; !f.guards[0].expected.Expected(); i++ {
		mustGet(t, f.guards[0], fmt.Sprint("missed", i), returns("v"))
	}
	return f
}

func TestAMissThatIsExpectedIsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := expectingMisses(t, a, Config{})
	misses := 0
	requests := s.FewestReads(3, func() {
		misses++
		mustGet(t, f.guards[0], fmt.Sprint("k", misses), returns("v"))
	})
	expect.Equal(t, "requests", requests, 3) // acquire with a read of the epochs, fill
}

func TestAHitWhereAMissIsExpectedIsStillAHit(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := expectingMisses(t, a, Config{})
	g := f.guards[0]
	for i := 0; g.expected.Expected(); i++ {
		v, how, err := get(context.Background(), g, fmt.Sprint("missed", i), unwanted[string](t))
		if v != "v" || how != Hit || err != nil {
			t.Fatalf("got %q, %q, %v", v, how, err)
		}
	}
	wantTraffic(t, s, map[string]int64{"mget": 1}, func(int) func() {
		return func() { mustGet(t, g, "missed0", unwanted[string](t)) }
	})
}

func TestAStaleValueWhereAMissIsExpectedIsServedAndReplaced(t *testing.T) {
	t.Parallel()
	f := expectingMisses(t, standalone(t), Config{TTL: 20 * time.Millisecond, StaleFor: time.Hour, Jitter: -1})
	g := f.guards[0]
	mustGet(t, g, "k", returns("old"))
	redistest.Await(t, "the value is stale", func() bool {
		v, how, err := get(context.Background(), g, "k", returns("new"))
		return err == nil && v == "old" && how == Stale
	})
	redistest.Await(t, "it is replaced", func() bool { return mustGet(t, g, "k", returns("new")) == "new" })
}
