package cacheguard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/semaphore"
)

const (
	fleetLoads = "fleet-loads" // the name of the semaphore of permitsOf
	handOns    = 8             // of a permit, in a row
)

// permitsOf is a Limiter of so many permits for the fleet, which newGuard replaces by one on the instance's client.
type permitsOf int

func (permitsOf) Take(context.Context, func() int) (free func(), err error) { return nil, nil }
func (permitsOf) Try(context.Context) (free func(), err error)              { return nil, nil }

// limiterOf is the Limiter of an instance.
func limiterOf(t *testing.T, rdb Redis, cfg Config) Limiter {
	t.Helper()
	n, is := cfg.Limiter.(permitsOf)
	if !is {
		return cfg.Limiter
	}
	if n <= 0 {
		return nil
	}
	l, err := semaphore.NewLimiter(rdb, fleetLoads, semaphore.Config{
		Prefix: cfg.Prefix, Instance: cfg.Instance, Permits: int(n), TTL: cfg.LeaseTTL, RedisTimeout: cfg.RedisTimeout,
	})
	expect.Must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // always nil; after the Guard's
	return l
}

// suspended reports whether loads need no permits.
func (g *Guard) suspended() bool { return g.cfg.Limiter.(*semaphore.Limiter).Stats().Suspended }

// pool is a database that counts its queries under way.
type pool struct{ running, most, queries atomic.Int64 }

func (p *pool) query(wait func()) {
	now := p.running.Add(1)
	for seen := p.most.Load(); now > seen && !p.most.CompareAndSwap(seen, now); seen = p.most.Load() {
	}
	p.queries.Add(1)
	wait()
	p.running.Add(-1)
}

// semaphore is the one that has the permits, for somebody who looks at it. The caller closes it.
func (f *fleet) semaphore() *semaphore.Locker {
	f.t.Helper()
	k, err := semaphore.New(f.guards[0].rdb, semaphore.Config{Prefix: f.guards[0].cfg.Prefix, Permits: 1, RedisTimeout: bearing})
	expect.Must(f.t, err)
	return k
}

// permits inspects the permits of the fleet.
func (f *fleet) permits() semaphore.Info {
	f.t.Helper()
	info, err := f.permitsIfRedisAnswers()
	expect.Must(f.t, err)
	return info
}

func (f *fleet) permitsIfRedisAnswers() (semaphore.Info, error) {
	k := f.semaphore()
	defer k.Close()
	return k.Inspect(context.Background(), fleetLoads)
}

func (f *fleet) awaitPermits(held int) {
	f.t.Helper()
	redistest.Await(f.t, "so many permits are held, and nobody waits", func() bool {
		p := f.permits()
		return len(p.Holders) == held && p.Waiters == 0
	})
}

// All instances miss all keys at once. In a cluster, the keys are on all nodes. BenchmarkColdFleet does this with 20 instances and 10,000
// keys.
func TestAColdStartNeverAsksTheDatabaseMoreThanFleetLoadsAllow(t *testing.T) {
	t.Parallel()
	expect.Each(t, expect.Some(1, map[string]func(*testing.T) arena{
		"standalone": standalone, "cluster": onCluster, "50 ms away": farAway,
	}), func(t *testing.T, _ string, a func(*testing.T) arena) {
		coldStart(t, a(t))
	})
}

// farAway is a Redis at a round trip of 50 ms.
func farAway(t *testing.T) arena {
	far := redistest.StartFar(t, shared.Addr(), 50*time.Millisecond)
	return arena{client: func(tb testing.TB) client { return far.Client(tb) }}
}

func coldStart(t *testing.T, a arena) {
	const instances, keys, limit = 5, 300, 3
	f := newFleet(t, a, instances, Config{Limiter: permitsOf(limit), RedisTimeout: time.Minute, LeaseTTL: time.Minute}).listening()
	var db pool
	var all sync.WaitGroup
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open) // or Close would wait for ever
	for _, g := range f.guards {
		for i := range keys {
			all.Go(func() { // owner: the test; ends with the Get; joined below
				expect.Returns(t, i, nil)(Get(context.Background(), g, fmt.Sprint("k", i), func(context.Context) (int, error) {
					db.query(func() { <-gate })
					return i, nil
				}))
			})
		}
	}
	redistest.Await(t, "as many loads run as may, and others wait", func() bool {
		queued := 0
		for _, g := range f.guards {
			queued += int(g.Stats().Of("limiter_queued"))
		}
		return db.running.Load() == limit && queued >= instances
	})
	if n := f.permits().Waiters; n > instances*limit {
		t.Errorf("%d requests wait for permits", n)
	}
	open()
	all.Wait()
	expect.Equal(t, "at once", db.most.Load(), limit)
	expect.Equal(t, "queries", db.queries.Load(), keys)
	f.awaitPermits(0)
}

// A request that waits in Redis costs a heartbeat a second, and the one that all others wait behind.
func TestABusyInstanceQueuesForAPermitForEachEightLoads(t *testing.T) {
	t.Parallel()
	const loads, permits = 64, 100
	f := newFleet(t, standalone(t), 2, Config{Limiter: permitsOf(permits), MaxLoads: -1, RedisTimeout: time.Minute}).listening()
	db := newSource("v")
	var replies []<-chan reply[string]
	for i := range permits { // they have all permits
		replies = append(replies, async(f.guards[0], fmt.Sprint("other", i), db.load))
	}
	redistest.Await(t, "all permits are in use", func() bool { return db.loads.Load() == permits })
	for i := range loads {
		replies = append(replies, async(f.guards[1], fmt.Sprint("k", i), db.load))
	}
	redistest.Await(t, "all loads wait, and some requests for all", func() bool {
		return f.guards[1].Stats().Of("limiter_queued") == float64(loads) && f.permits().Waiters == loads/handOns
	})
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	f.awaitPermits(0)
}

func TestColdKeysDoNotStarveAHotOneOfItsPermit(t *testing.T) {
	t.Parallel()
	const cold, callers = 200, 50
	f := newFleet(t, standalone(t), 2, Config{Limiter: permitsOf(1), MaxLoads: -1, RedisTimeout: time.Minute, LeaseTTL: time.Minute}).listening()
	var loads, before atomic.Int64
	step := make(chan struct{})
	open := sync.OnceFunc(func() { close(step) })
	t.Cleanup(open)
	load := func(context.Context) (int, error) {
		loads.Add(1)
		<-step
		return 1, nil
	}
	var all sync.WaitGroup
	ask := func(g *Guard, key string, load func(context.Context) (int, error)) {
		all.Go(func() { // owner: the test; ends with the Get; joined below
			expect.Returns(t, 1, nil)(Get(context.Background(), g, key, load))
		})
	}
	for i := range cold {
		ask(f.guards[i%2], fmt.Sprint("cold", i), load)
	}
	queued := func() int {
		return int(f.guards[0].Stats().Of("limiter_queued") + f.guards[1].Stats().Of("limiter_queued"))
	}
	redistest.Await(t, "the cold ones wait", func() bool { return loads.Load() == 1 && queued() == cold-1 })
	for range callers {
		ask(f.guards[0], "hot", func(ctx context.Context) (int, error) {
			before.Store(loads.Load())
			return load(ctx)
		})
	}
	awaitCallers[int](f, 0, "hot", callers)
	redistest.Await(t, "the hot one waits", func() bool { return queued() == cold })
	open()
	all.Wait()
	if n := before.Load(); n > 4*handOns {
		t.Errorf("%d loads began before that of the hot key", n)
	}
}

func TestCallersThatGiveUpWhileTheyWaitForAPermitLeaveNothing(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*testing.T) arena{"standalone": standalone, "50 ms away": farAway}, func(t *testing.T, _ string, a func(*testing.T) arena) {
		giveUpWaiting(t, a(t))
	})
}

func giveUpWaiting(t *testing.T, a arena) {
	const keys, each = 500, 2
	f := newFleet(t, a, 2, Config{Limiter: permitsOf(1), MaxLoads: -1, RedisTimeout: time.Minute, LeaseTTL: time.Minute}).listening()
	db := newSource("v")
	busy := async(f.guards[0], "busy", db.load)
	<-db.begun
	ctx, cancel := context.WithCancel(context.Background())
	var replies []<-chan reply[string]
	for i := range keys * each {
		replies = append(replies, asyncCtx(ctx, f.guards[1], fmt.Sprint("k", i%keys), unwanted[string](t)))
	}
	redistest.Await(t, "they wait", func() bool {
		return f.guards[1].Stats().Of("limiter_queued") == float64(keys) && f.permits().Waiters == 1
	})
	cancel()
	for _, r := range replies {
		expect.ErrorIs(t, (<-r).err, context.Canceled)
	}
	f.awaitPermits(1)
	redistest.Await(t, "no load waits", func() bool { return f.guards[1].Stats().Of("limiter_queued") == 0 })
	close(db.release)
	want(t, busy, "v")
	f.awaitPermits(0)
	want(t, async(f.guards[1], "k", returns("next")), "next")
	expect.Equal(t, "errors of Redis", f.events.redisErrors.Load(), 0)
}

func TestAStaleValueIsServedAtOnceAndRefreshedWhenAPermitIsFree(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{Limiter: permitsOf(1), TTL: time.Millisecond, StaleFor: time.Hour, RedisTimeout: time.Minute, LeaseTTL: time.Minute}).listening()
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", returns("old")), "old")
	db := newSource("v")
	busy := async(f.guards[0], "busy", db.load)
	<-db.begun
	var free atomic.Bool // a refresh that asked last may find the permit free
	refresh := func(context.Context) (string, error) {
		if !free.Load() {
			t.Error("loaded without a permit")
		}
		return "new", nil
	}
	stale := 0
	redistest.Await(t, "it is stale, again and again", func() bool {
		v, outcome, err := get(t.Context(), f.guards[1], "k", refresh)
		if err != nil || v != "old" {
			t.Error(v, err)
		}
		if outcome == Stale {
			stale++
		}
		return stale == 50
	})
	free.Store(true)
	close(db.release)
	want(t, busy, "v")
	redistest.Await(t, "it is refreshed", func() bool {
		v, _, err := get(t.Context(), f.guards[1], "k", refresh)
		return err == nil && v == "new"
	})
}

func TestWithoutRedisLoadsNeedNoPermitAndMaxLoadsHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := arena{client: func(tb testing.TB) client { return s.Client(tb) }}
	f := newFleet(t, a, 2, Config{Limiter: permitsOf(1), MaxLoads: 4, RedisTimeout: brisk, LeaseTTL: brisk}).listening()
	f.events.quiet = true
	held := newSource("held")
	busy := async(f.guards[0], "busy", held.load)
	<-held.begun
	waits := async(f.guards[1], "waits", returns("v"))
	redistest.Await(t, "a load waits for a permit", func() bool { return f.guards[1].Stats().Of("limiter_queued") == 1 })
	s.Pause()
	t.Cleanup(s.Resume)
	want(t, waits, "v")
	db := newSource("v")
	var replies []<-chan reply[string]
	for i := range 8 {
		replies = append(replies, async(f.guards[1], fmt.Sprint("k", i), db.load))
	}
	redistest.Await(t, "as many run as MaxLoads allow", func() bool { return db.loads.Load() == 4 && f.guards[1].Stats().Queued == 4 })
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	close(held.release)
	want(t, busy, "held")
	s.Resume()
	redistest.Await(t, "permits count again", func() bool { // the one of busy is over, or given back
		_ = mustGet(t, f.guards[1], "again", returns("v"))
		p, err := f.permitsIfRedisAnswers()
		return err == nil && len(p.Holders) == 0 && !f.guards[1].suspended()
	})
}

// permitProcess is the child of the test below: its load says "begun", and does not end.
func permitProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	g := newGuard(t, rdb, Config{Prefix: os.Getenv("PREFIX"), LeaseTTL: brisk, Limiter: permitsOf(1)})
	_, _ = Get(context.Background(), g, "other", func(context.Context) (string, error) {
		fmt.Println("begun")
		bufio.NewScanner(os.Stdin).Scan()
		return "", nil
	})
}

func TestThePermitOfAProcessThatDiesIsFreeWhenItsLeaseEnds(t *testing.T) {
	if redistest.IsChild(t) {
		permitProcess(t)
		return
	}
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LeaseTTL: brisk, Limiter: permitsOf(1)}).listening()
	child := redistest.Child(t, t.Name(), "ADDR="+shared.Addr(), "PREFIX="+f.guards[0].cfg.Prefix)
	child.Expect("begun")
	waits := async(f.guards[0], "k", returns("v"))
	redistest.Await(t, "it waits", func() bool { return f.permits().Waiters == 1 })
	child.Kill()
	want(t, waits, "v")
}

// The instance has all permits, so it would not ask for another one as long as it counts this one.
func TestALoadThatHasLostItsPermitHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Limiter: permitsOf(1), LeaseTTL: 3 * brisk}).listening()
	db := newSource("v")
	busy := async(f.guards[0], "busy", db.load)
	<-db.begun
	waits := async(f.guards[0], "waits", returns("v"))
	redistest.Await(t, "it waits", func() bool { return f.guards[0].Stats().Of("limiter_queued") == 1 })
	k := f.semaphore()
	defer k.Close()
	expect.Must(t, expect.Err(k.Revoke(context.Background(), fleetLoads)))
	want(t, waits, "v")
	close(db.release)
	want(t, busy, "v")
	f.awaitPermits(0)
}

// A process stalls for longer than a lease lasts. It has had its answer from Redis, so nothing may run without a permit.
func TestAPermitThatIsOverWhenItComesIsAskedForAgain(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	a := arena{client: func(tb testing.TB) client { return p.Client(tb) }}
	f := newFleet(t, a, 1, Config{Limiter: permitsOf(1), LeaseTTL: brisk}).listening()
	late := p.On(func(args []string) bool {
		return strings.HasPrefix(args[0], "eval") && len(args) > 3 && strings.Contains(args[3], fleetLoads)
	}, redistest.HoldReply).Times(1)
	got := async(f.guards[0], "k", returns("v"))
	<-late.Hit()
	redistest.Await(t, "the permit is over", func() bool { return len(f.permits().Holders) == 0 })
	late.Release()
	want(t, got, "v")
	expect.Equal(t, "errors of Redis", f.events.redisErrors.Load(), 0)
	expect.Equal(t, "loads run without permits", f.guards[0].suspended(), false)
}

func TestALoaderThatAsksForAnotherKeySharesItsPermit(t *testing.T) {
	t.Parallel()
	g := newFleet(t, standalone(t), 1, Config{Limiter: permitsOf(1), RedisTimeout: time.Minute}).guards[0]
	want(t, async(g, "outer", func(ctx context.Context) (string, error) { return Get(ctx, g, "inner", returns("v")) }), "v")
}

func TestABusyInstanceUsesAPermitForSomeLoads(t *testing.T) {
	t.Parallel()
	const loads = 64
	var asked atomic.Int64
	f := newFleet(t, standalone(t), 1, Config{Limiter: permitsOf(1), RedisTimeout: time.Minute}).listening()
	g := f.guards[0]
	seen := make(map[string]bool) // guarded by there being one permit
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range loads {
		all.Go(func() { // owner: the test; ends with the Get; joined below
			_, err := Get(context.Background(), g, fmt.Sprint("k", i), func(context.Context) (int, error) {
				<-gate
				if token := f.permits().Holders[0].Token; !seen[token] {
					seen[token] = true
					asked.Add(1)
				}
				return 1, nil
			})
			expect.ErrorIs(t, err)
		})
	}
	redistest.Await(t, "the others wait", func() bool { return g.Stats().Of("limiter_queued") == float64(loads-1) })
	close(gate)
	all.Wait()
	if n := asked.Load(); n < loads/handOns || n > loads/2 {
		t.Errorf("%d permits for %d loads", n, loads)
	}
}

func TestLoadsThatWaitForFleetLoadsAreLogged(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.Limiter, cfg.RedisTimeout = permitsOf(1), time.Minute
	g := newFleet(t, standalone(t), 1, cfg).guards[0]
	db := newSource("v")
	first := async(g, "a", db.load)
	<-db.begun
	second := async(g, "b", db.load)
	redistest.Await(t, "it is logged", func() bool { return len(lines(text(), "cacheguard: loads wait for Config.Limiter")) > 0 })
	close(db.release)
	want(t, first, "v")
	want(t, second, "v")
	redistest.Await(t, "so is the end", func() bool { return len(lines(text(), "no load waits for Config.Limiter")) > 0 })
}

// Whoever closes both: calls of the Guard may still wait for the Limiter, and what they hear is that the Guard is closed.
func TestCallsThatWaitForALimiterThatIsClosedHearThatTheGuardIs(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]bool{"the Guard first": true, "the Limiter alone": false}, func(t *testing.T, _ string, closes bool) {
		f := newFleet(t, standalone(t), 2, Config{Limiter: permitsOf(1), RedisTimeout: time.Minute}).listening()
		db := newSource("v")
		busy := async(f.guards[1], "busy", db.load)
		<-db.begun
		g, failed := f.guards[0], make(chan error, 1)
		go func() { // owner: the test; ends with the GetMany; joined by receiving
			_, err := GetMany(context.Background(), g, []string{"a", "b"}, func(context.Context, []string) (map[string]string, error) {
				return nil, errors.New("loaded")
			})
			failed <- err
		}()
		redistest.Await(t, "it waits", func() bool { return g.Stats().Of("limiter_queued") == 1 })
		if closes {
			_ = g.Close() // always nil
		}
		_ = g.cfg.Limiter.(*semaphore.Limiter).Close() // always nil
		err := <-failed
		if text := fmt.Sprint(err); strings.Contains(text, "nil") || strings.Contains(text, "loaded") || closes && !errors.Is(err, ErrClosed) {
			t.Error(text)
		}
		close(db.release)
		want(t, busy, "v")
	})
}
