package cacheguard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/slots"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// busyAt makes the Guard run the one loader that it may run at once, until it is released.
func busyAt(t *testing.T, g *Guard) (release func()) {
	t.Helper()
	busy := newSource("busy")
	reply := async(g, "busy", busy.load)
	<-busy.begun
	return func() {
		close(busy.release)
		want(t, reply, "busy")
	}
}

func TestALoadThatHasToWaitForItsTurnRunsNoScriptBefore(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 1, Config{MaxLoads: 1}).listening()
	warm(t, f)
	g := f.guards[0]
	release := busyAt(t, g)
	tries, waiting := 0, []<-chan reply[string]{}
	redistest.Await(t, "one waits for its turn, and has asked what there is, while nothing else sends a script", func() bool {
		tries++
		before := s.Commands()
		waiting = append(waiting, async(g, fmt.Sprint("k", tries), returns("v")))
		redistest.Await(t, "it waits for its turn", func() bool { return g.Stats().Queued == tries })
		after := s.Commands()
		return after["exists"]-before["exists"] == 1 && after["evalsha"] == before["evalsha"]
	})
	release()
	for _, reply := range waiting {
		want(t, reply, "v")
	}
}

// It tries until Redis is as near as it seems when nobody else needs the processor.
func TestALoadThatWaitedForItsTurnReadsWhatAnotherInstanceStored(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 2, Config{MaxLoads: 1}).listening()
	warm(t, f)
	tries := 0
	redistest.Await(t, "a read in place of a script", func() bool {
		tries++
		key := fmt.Sprint("k", tries)
		busy := newSource("busy")
		first := async(f.guards[1], fmt.Sprint("busy", tries), busy.load)
		<-busy.begun
		reply := async(f.guards[1], key, unwanted[string](t))
		redistest.Await(t, "it waits for its turn", func() bool { return f.guards[1].Stats().Queued == 1 })
		mustGet(t, f.guards[0], key, returns("v"))
		f.stored()
		before := s.Commands()
		close(busy.release)
		want(t, first, "busy")
		want(t, reply, "v")
		f.stored()
		return s.Commands()["evalsha"]-before["evalsha"] == 1 // the other load's fill
	})
}

func promiseBusyLoaders(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{MaxLoads: 1}).listening()
	release := busyAt(t, f.guards[1])
	db := newSource("v")
	there := async(f.guards[0], "k", db.load)
	<-db.begun
	here := async(f.guards[1], "k", unwanted[string](t))
	f.awaitRegistered("k", 1)
	close(db.release)
	want(t, there, "v")
	want(t, here, "v")

	var waiting []<-chan reply[int] // on all nodes, and several to a request
	for i := range 100 {
		waiting = append(waiting, async(f.guards[1], fmt.Sprint("waiting", i), returns(i)))
	}
	redistest.Await(t, "all wait for their turn", func() bool {
		return f.guards[1].Stats().Queued == len(waiting)
	})
	release()
	for i, r := range waiting {
		want(t, r, i)
	}
	expect.Equal(t, "Gets without the cache", f.events.count(Bypassed), 0)
}

func TestBusyLoadersDoNotHoldUpAHitWhereAMissIsExpected(t *testing.T) {
	t.Parallel()
	f := expectingMisses(t, standalone(t), Config{MaxLoads: 1})
	g := f.stored().guards[0]
	release := busyAt(t, g)
	expect.Equal(t, "a miss is expected", g.expected.Expected(), true)
	expect.Returns(t, "v", Hit, nil)(get(context.Background(), g, "missed0", unwanted[string](t)))
	release()
}

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
			expect.Returns(t, 1, nil)(Get(context.Background(), g, key, load))
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

func TestBusyLoadersDoNotHoldUpAValueThatAnotherInstanceStored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{MaxLoads: 1, LeaseTTL: time.Minute}).listening()
	big := strings.Repeat("x", 5000)
	db, busy := newSource(big), newSource("busy")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	second := async(f.guards[1], "k", returns("unwanted"))
	f.awaitRegistered("k", 1)
	other := async(f.guards[1], "other", busy.load)
	<-busy.begun
	close(db.release)
	want(t, first, big)
	want(t, second, big) // though the one loader that may run here is still at it
	close(busy.release)
	<-other
}

func TestAForeignValueIsReplacedByOneLoad(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(f *fleet){
		"list":  func(f *fleet) { f.redis.LPush(context.Background(), f.value("k"), "x") },
		"empty": func(f *fleet) { f.redis.Set(context.Background(), f.value("k"), "", 0) },
		"c":     func(f *fleet) { f.redis.Set(context.Background(), f.value("k"), "c", 0) },
		"other": func(f *fleet) { f.redis.Set(context.Background(), f.value("k"), "other", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, standalone(t), 4, Config{LeaseTTL: time.Minute}).listening()
			plant(f)
			big := strings.Repeat("x", 5000)
			db := newSource(big)
			var replies []<-chan reply[string]
			for _, g := range f.guards {
				replies = append(replies, async(g, "k", db.load))
			}
			<-db.begun
			f.awaitRegistered("k", 3)
			close(db.release)
			for _, r := range replies {
				want(t, r, big)
			}
			expect.Equal(t, "loads", db.loads.Load(), 1)
		})
	}
}

func TestWhoCannotRegisterBecauseRedisIsFullStillWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := newFleetOn(t, s.Client(t), Config{LeaseTTL: time.Minute}, s.Client(t), s.Client(t), s.Client(t)).listening()
	warm(t, f)
	db := newSource("v")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	f.redis.ConfigSet(context.Background(), "maxmemory", "1")
	second := async(f.guards[1], "k", db.load)
	third := async(f.guards[2], "k", db.load)
	awaitCallers[string](f, 1, "k", 1)
	awaitCallers[string](f, 2, "k", 1)
	hold(t, 200*time.Millisecond)
	expect.Equal(t, "loads", db.loads.Load(), 1)
	f.redis.ConfigSet(context.Background(), "maxmemory", "0")
	close(db.release)
	for _, r := range []<-chan reply[string]{first, second, third} {
		want(t, r, "v")
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func TestAHitIsNotHeldUpByALoadThatWasOvertaken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: time.Minute})
	slow := newSource("old")
	first := async(f.guards[0], "k", slow.load)
	<-slow.begun
	mustInvalidate(t, f.guards[1], "k")
	expect.Equal(t, "new", mustGet(t, f.guards[1], "k", returns("new")), "new")
	second := async(f.guards[0], "k", returns("unwanted"))
	want(t, second, "new") // while the load goes on
	close(slow.release)
	<-first
}
