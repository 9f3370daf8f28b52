package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// soon is a HedgeAfter that tests reach, and a Redis that answers does not, on a busy machine either.
const soon = brisk

var errBroken = errors.New("broken")

// keptWaiting returns two guards, the first of which has a Redis behind a proxy, and a client that waits for it as long as it takes.
func keptWaiting(t *testing.T, cfg Config) (*fleet, *redistest.Proxy) {
	t.Helper()
	proxy := redistest.StartProxy(t, shared.Addr())
	cfg.RedisTimeout, cfg.LoadTimeout = bearing, time.Hour // it may be held for as long as the test takes
	f := newFleetOn(t, shared.Client(t), cfg, proxy.Client(t), shared.Client(t))
	f.guards[1].cfg.HedgeAfter = off // it looks around
	if cfg.HedgeAfter == soon {
		f.guards[0].loaders.cost.Took(time.Hour) // more than Redis takes on a busy machine: no part is slow
	}
	warm(t, f)
	takes(&f.guards[0].ordinary.kind.cost, time.Microsecond) // less than Redis
	return f, proxy
}

func TestGetThatRedisKeepsWaitingLoadsBesideIt(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	expect.Equal(t, "at first", mustGet(t, f.guards[1], "k", returns("stored")), "stored")
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	expect.Equal(t, "while the reply is held", mustGet(t, f.guards[0], "k", returns("loaded")), "loaded")
	s := f.guards[0].Stats()
	expect.Equal(t, "hedged", s.Of("hedged_loads_total"), 1)
	expect.Equal(t, "won", s.Of("hedges_won_total"), 1)
	rule.Remove()
	expect.Equal(t, "what the load stored", mustGet(t, f.guards[1], "k", unwanted[string](t)), "stored")
}

// The load reads before the write, and Redis' replies are late: the answer is for nobody who asks after the Invalidate.
func TestHedgeThatOvertakesAnInvalidateIsStoredNowhereAndAnswersNobodyLater(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	var loads atomic.Int64
	begun, goOn := make(chan struct{}), make(chan struct{})
	load := func(context.Context) (string, error) {
		if loads.Add(1) == 1 {
			close(begun)
			<-goOn
			return "old", nil
		}
		return "new", nil
	}
	early := async(f.guards[0], "k", load)
	<-begun
	expect.Must(t, f.guards[1].Invalidate(t.Context(), "k"))
	late := async(f.guards[0], "k", load)
	redistest.Await(t, "the later Get has joined the load", func() bool {
		return f.guards[0].Stats().Waiting == 2
	})
	close(goOn)
	want(t, early, "old")
	rule.Remove()
	want(t, late, "new")
	expect.Equal(t, "elsewhere", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

func TestHedgeThatFailsAnswersNobody(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	mustGet(t, f.guards[1], "k", returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	failed := make(chan struct{})
	var loads atomic.Int64
	got := async(f.guards[0], "k", func(context.Context) (string, error) {
		if loads.Add(1) == 1 {
			defer close(failed)
		}
		return "", errBroken
	})
	<-failed
	rule.Remove()
	want(t, got, "stored")
	expect.Equal(t, "loads", loads.Load(), 1)
}

func TestHedgeTakesOnlyASlotThatNoOtherLoadNeeds(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon, MaxLoads: 1})
	mustGet(t, f.guards[1], "k", returns("stored"))
	limits := f.guards[0].loaders.limits
	other := limits.Try(t.Context(), limit.Need{})
	rule := proxy.On(reading, redistest.HoldReply)
	got := async(f.guards[0], "k", unwanted[string](t))
	redistest.Await(t, "the hedge waits for a slot", func() bool { return f.guards[0].Stats().Waiting == 1 })
	rule.Remove()
	want(t, got, "stored")
	limits.Free(other)
	expect.Equal(t, "hedged", f.guards[0].Stats().Of("hedged_loads_total"), 0)
}

func TestLoadBesideRedisEndsWhenRedisAnswers(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	mustGet(t, f.guards[1], "k", returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	begun, ended := make(chan struct{}), make(chan struct{})
	got := async(f.guards[0], "k", func(ctx context.Context) (string, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	})
	<-begun
	rule.Remove()
	want(t, got, "stored")
	<-ended
}

// They leave no load, no slot and nobody in line.
func TestThousandCallersThatGiveUpBesideASlowRedisLeaveNothing(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon, MaxLoads: 1})
	g := f.guards[0]
	mustGet(t, f.guards[1], "0", returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	ctx, giveUp := context.WithCancel(t.Context())
	var begun sync.Once
	loading := make(chan struct{})
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			_, err := Get(ctx, g, strconv.Itoa(i%20), func(ctx context.Context) (string, error) {
				begun.Do(func() { close(loading) })
				<-ctx.Done()
				return "", ctx.Err()
			})
			expect.ErrorIs(t, err, context.Canceled)
		})
	}
	<-loading
	giveUp()
	all.Wait()
	rule.Remove()
	redistest.Await(t, "nobody loads or waits", func() bool { s := g.Stats(); return s.Loading == 0 && s.Waiting == 0 })
	var s limit.Slot
	redistest.Await(t, "the slot is free", func() bool {
		s = g.loaders.limits.Try(t.Context(), limit.Need{})
		return !s.IsNone()
	})
	g.loaders.limits.Free(s)
	_, err := g.link.Get(t.Context(), f.value("0")) // who joins a read that they had asked for, and that is not sent yet, joins one that is late
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "from Redis", mustGet(t, g, "0", unwanted[string](t)), "stored")
}

func TestRedisThatStopsCausesOneLoadOfAKey(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	mustGet(t, f.guards[1], "k", returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	expect.Equal(t, "the first", mustGet(t, f.guards[0], "k", returns("loaded")), "loaded")
	var later []<-chan reply[string]
	for range 20 {
		later = append(later, async(f.guards[0], "k", unwanted[string](t)))
	}
	redistest.Await(t, "all are in line for a load", func() bool { return f.guards[0].Stats().Waiting == 20 })
	rule.Remove()
	for _, got := range later {
		want(t, got, "stored")
	}
	expect.Equal(t, "hedged", f.guards[0].Stats().Of("hedged_loads_total"), 1)
}

// At its first reply others are on their way, to callers who find now that theirs is late.
func TestFirstReplyAfterAStopCausesNoSecondLoad(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: time.Hour})
	g := f.guards[0]
	g.loaders.cost.Took(time.Hour) // no part is slow, also where the machine is
	mustGet(t, f.guards[1], "k", returns("stored"))
	mustGet(t, f.guards[1], "other", returns("stored"))
	var later sync.WaitGroup
	defer later.Wait()
	rule := proxy.On(func(args []string) bool { return reading(args) && slices.Contains(args, f.value("k")) }, redistest.HoldReply)
	defer rule.Remove()
	lateGet := func(load func(context.Context) (string, error)) (v string, answered bool) {
		q := hedging[string]{query: &query[string]{guard: g, spec: specOf[string](&g.ordinary), asked: g.clock.Now()}}
		q.spec.key, q.spec.valueKey, q.spec.loader = "k", f.value("k"), load
		read, err := g.link.Ask(t.Context(), q.spec.valueKey)
		if err == nil {
			v, _, answered, err = q.awaitLate(t.Context(), &wanted[string]{key: "k", read: read}, read, false)
		}
		expect.Equal(t, "error", err, nil)
		return v, answered
	}
	v, _ := lateGet(returns("loaded"))
	expect.Equal(t, "the first", v, "loaded")
	for range 20 {
		expect.Equal(t, "whose reply comes first", mustGet(t, g, "other", unwanted[string](t)), "stored")
	}
	for range 20 {
		later.Go(func() {
			_, answered := lateGet(unwanted[string](t))
			expect.Equal(t, "answered by a load", answered, false)
		})
	}
	redistest.Await(t, "all are in line for a load", func() bool { s := g.Stats(); return s.Waiting == 20 || s.Of("hedged_loads_total") > 1 })
	rule.Remove()
	later.Wait()
	expect.Equal(t, "hedged", g.Stats().Of("hedged_loads_total"), 1)
}

// There, those who have their answers wait for the processor, also while the time of others is over. How long they do is known to nobody, so
// that a stop now and then causes a second load; without the reprieve each of them does.
func TestStopOfRedisCausesOneLoadOfAKeyInABusyProcessToo(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: time.Millisecond}) // less than it takes to have a turn
	f.guards[0].loaders.cost.Took(time.Hour)                         // no part is slow
	for i := range 10 {
		if loadsOfAStopWhileBusy(t, f, proxy, fmt.Sprint("k", i)) == 1 {
			return
		}
	}
	t.Error("each of 10 stops of Redis caused a second load")
}

func loadsOfAStopWhileBusy(t *testing.T, f *fleet, proxy *redistest.Proxy, key string) uint64 {
	t.Helper()
	g := f.guards[0]
	mustGet(t, f.guards[1], key, returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	before := g.Stats().Of("hedged_loads_total")
	expect.Equal(t, "the first", mustGet(t, g, key, returns("loaded")), "loaded")
	later := async(g, key, returns("loaded again"))
	redistest.Await(t, "the next is in line for a load, or has one", func() bool { s := g.Stats(); return s.Waiting == 1 || s.Of("hedged_loads_total")-before > 1 })
	var over atomic.Bool
	var busy sync.WaitGroup
	defer busy.Wait()
	defer over.Store(true)
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() { // owner: the test; stop: over; joined at its end
			for !over.Load() { // it is busy
			}
		})
	}
	rule.Remove()
	expect.Equal(t, "error", (<-later).err, nil)
	return uint64(g.Stats().Of("hedged_loads_total") - before)
}

// What Redis does not have is about to come: the Get does not begin again.
func TestGetOfWhatRedisDoesNotHaveWaitsForTheLoadThatRunsBesideIt(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	g := f.guards[0]
	mustGet(t, f.guards[1], "other", returns("stored"))
	for g.expected.Expected() { // then it would ask for the lease at once
		g.expected.Found(true)
	}
	var loads atomic.Int64
	goOn := make(chan struct{})
	rule := proxy.On(reading, redistest.HoldReply)
	got := async(g, "k", func(ctx context.Context) (string, error) {
		loads.Add(1)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return "loaded", ctx.Err()
	})
	redistest.Await(t, "it loads beside Redis", func() bool { return g.Stats().Loading == 1 })
	rule.Remove()
	for range 20 { // by then it has heard that Redis does not have it
		mustGet(t, g, "other", returns("stored"))
	}
	close(goOn)
	want(t, got, "loaded")
	expect.Equal(t, "loads", loads.Load(), 1)
}

// A loader of the key runs under its lease, which takes no longer than another one would.
func TestNoHedgeLoadsBesideALoaderOfTheKey(t *testing.T) {
	t.Parallel()
	f, _ := keptWaiting(t, Config{HedgeAfter: time.Hour})
	g := f.guards[0]
	db := newSource("loaded")
	first := async(g, "k", db.load)
	<-db.begun
	q := query[string]{guard: g, spec: specOf[string](&g.ordinary), asked: g.clock.Now()}
	q.spec.key, q.spec.valueKey, q.spec.loader = "k", f.value("k"), unwanted[string](t)
	j := q.loadOf(t.Context(), "k", nil)
	j.spare, j.ends = true, deadlineOf(t.Context())
	expect.ErrorIs(t, g.runHedge(t.Context(), j, func(answer) {}).err, errNoHedge)
	close(db.release)
	want(t, first, "loaded")
	expect.Equal(t, "hedged", g.Stats().Of("hedged_loads_total"), 0)
}

// Redis says that it has nothing, or does not answer, or loads have become dear, just when the loader has returned: in a crowd a call may hear of the one long
// before the other.
func TestACallHasWhatIsLoadedBesideRedisWhicheverItHearsOfFirst(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: time.Hour})
	g := f.guards[0]
	g.loaders.cost.Took(time.Hour) // no part is slow, also where the machine is
	mustGet(t, f.guards[1], "k", returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	hears := map[string]func(q *hedging[string]) (answer, bool){
		"nothing":   func(q *hedging[string]) (answer, bool) { return q.answer(t.Context(), doRebuild) },
		"no answer": func(q *hedging[string]) (answer, bool) { return q.answer(t.Context(), doBypass) },
		"dear": func(q *hedging[string]) (answer, bool) {
			read, err := g.link.Ask(t.Context(), q.spec.valueKey)
			expect.Equal(t, "error", err, nil)
			defer read.Leave()
			takes(&g.ordinary.kind.cost, time.Hour)
			return q.beside(t.Context(), read)
		},
	}
	for _, first := range []string{"nothing", "no answer", "dear"} {
		q := hedging[string]{query: &query[string]{guard: g, spec: specOf[string](&g.ordinary), asked: g.clock.Now()}}
		q.spec.key, q.spec.valueKey, q.spec.loader = first, f.value(first), returns("loaded")
		j := q.loadOf(t.Context(), first, nil)
		j.spare, j.ends = true, deadlineOf(t.Context())
		hedge, err := g.enter(t.Context(), j, hedged, func(ctx context.Context, publish func(answer)) answer { return g.runHedge(ctx, j, publish) })
		expect.Equal(t, "error", err, nil)
		redistest.Await(t, "its loader has returned", func() bool {
			return g.flights.Count(func(k flightKey) bool { return k.key == first }).Published == 1
		})
		q.load = &hedge
		a, done := hears[first](&q)
		q.leave()
		if !done || *a.value.(*string) != "loaded" {
			t.Errorf("hears first %q: done %v, %+v", first, done, a)
		}
	}
}

// A load that takes longer than the call has left takes no slot of those that can be in time.
func TestALoadBesideRedisThatCannotBeInTimeIsNotBegun(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: soon})
	g := f.guards[0]
	takes(&g.ordinary.kind.cost, bearing/4) // less than Redis, which is late, and more than the caller has
	mustGet(t, f.guards[1], "k", returns("stored"))
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	ctx, cancel := context.WithTimeout(t.Context(), 4*soon)
	defer cancel()
	_, err := Get(ctx, g, "k", unwanted[string](t))
	expect.ErrorIs(t, err, context.DeadlineExceeded)
	expect.Equal(t, "hedged", g.Stats().Of("hedged_loads_total"), 0)
}

// Redis has the values that a load which was made first, as Redis is slow, does not get.
func TestAGetManyWhoseLoadFailsHasWhatASlowRedisHas(t *testing.T) {
	t.Parallel()
	f, _ := keptWaiting(t, Config{HedgeAfter: time.Hour})
	g := f.guards[0]
	mustGet(t, f.guards[1], "k", returns("stored"))
	slowTo(t, g)
	takes(&g.ordinary.kind.cost, time.Microsecond)
	loads := 0
	got, err := GetMany(t.Context(), g, []string{"k"}, func(context.Context, []string) (map[string]string, error) {
		loads++
		return nil, errBroken
	})
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "from Redis", got["k"], "stored")
	expect.Equal(t, "loads", loads, 1)
}

func TestNothingIsLoadedBesideRedis(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]Config{
		"off": {HedgeAfter: off}, "FailClosed": {HedgeAfter: soon, FailClosed: true}, "a slower loader": {HedgeAfter: time.Millisecond},
	}, func(t *testing.T, _ string, cfg Config) {
		f, proxy := keptWaiting(t, cfg)
		if cfg.HedgeAfter == time.Millisecond {
			f.guards[0].loaders.cost.Took(time.Hour)
			f.guards[0].ordinary.kind.cost.Took(time.Hour)
		}
		mustGet(t, f.guards[1], "k", returns("stored"))
		rule := proxy.On(reading, redistest.HoldReply)
		got := async(f.guards[0], "k", unwanted[string](t))
		<-rule.Hit()
		for range 20 { // other requests pass meanwhile
			expect.Must(t, f.guards[0].Invalidate(t.Context(), "other"))
		}
		rule.Remove()
		want(t, got, "stored")
	})
}

// The messages alone are late: whoever waits for another instance has its value all the same, without a load of his own.
func TestSlowMessagesCostAWaiterNoLoad(t *testing.T) {
	t.Parallel()
	cfg := Config{HedgeAfter: soon, LeaseTTL: time.Hour, WaitTimeout: time.Hour}
	expect.Beside(t, "the subscription", func(t *testing.T) {
		proxy := redistest.StartProxy(t, shared.Addr())
		f := newFleetOn(t, shared.Client(t), cfg, shared.Client(t), proxy.Client(t)).listening()
		proxy.DelaySubscribers(lag)
		f.wakesAWaiter()
	})
	expect.Beside(t, "SUBSCRIBE", func(t *testing.T) {
		proxy := redistest.StartProxy(t, shared.Addr())
		rule := proxy.On(redistest.Command("subscribe"), redistest.Hold)
		defer rule.Remove()
		f := newFleetOn(t, shared.Client(t), cfg, shared.Client(t), proxy.Client(t))
		f.deaf = true // as long as that takes
		f.wakesAWaiter()
		<-rule.Hit()
	})
	expect.Beside(t, "PUBLISH", func(t *testing.T) {
		server := redistest.StartServerless(t) // there, processes publish, and not scripts
		f := newFleetOn(t, server.Around(t), cfg, server.Client(t), server.Client(t)).listening()
		mustGet(t, f.guards[1], "other", returns("v")) // it knows what loads take
		rule := server.On(redistest.Command("publish"), redistest.Hold)
		defer rule.Remove()
		f.wakesAWaiter()
		<-rule.Hit()
	})
}

func TestStaleValueComesBeforeALoadBesideRedis(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{
		HedgeAfter: soon, TTL: redistest.Brisk, StaleFor: time.Hour, // a value that is stale when it is read would be refreshed, and leave the tier
		Local: LocalConfig{MaxEntries: 10, TTL: time.Hour, MaxLag: time.Hour}, // also while the machine stands still
	})
	f.listening()
	mustGet(t, f.guards[1], "k", returns("stored"))
	cost := &f.guards[0].ordinary.kind.cost
	redistest.Await(t, "the tier has it", func() bool {
		takes(cost, time.Hour) // a load beside a Redis that is late, on a busy machine, would be stored nowhere
		_, err := Get(t.Context(), f.guards[0], "k", returns("stored"))
		f.stored() // a refresh that it has begun would take it out of the tier
		return err == nil && f.guards[0].Stats().LocalEntries == 1
	})
	takes(cost, time.Microsecond)
	rule := proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	redistest.Await(t, "a stale value of the tier", func() bool {
		_, how, err := Fetch(t.Context(), f.guards[0], "k", Source[string]{Load: func(context.Context, *string) (string, error) {
			t.Error("loaded")
			return "", nil
		}})
		return err == nil && how == Stale
	})
}

// takes makes this the mean of a cost, or the median of a part, whatever loads and replies take on a busy machine.
func takes(measure interface{ Took(time.Duration) }, of time.Duration) {
	for range 100 {
		measure.Took(of)
	}
}

// becomesSlow has the Guard wait for a second for each reply, and loads cost so much, until it finds that Redis is slow.
func becomesSlow(t *testing.T, g *Guard, proxy *redistest.Proxy, cost time.Duration) {
	t.Helper()
	proxy.Delay(time.Second)
	redistest.Await(t, "slow", func() bool {
		takes(&g.loaders.cost, cost)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { mustGet(t, g, "k", returns("loaded")) })
		}
		all.Wait()
		return g.Stats().SlowParts == 1
	})
}

func TestSlowPartIsLoadedFirstUntilItIsQuickAgain(t *testing.T) {
	t.Parallel()
	cfg, text := logged()
	cfg.HedgeAfter = time.Hour
	f, proxy := keptWaiting(t, cfg)
	g := f.guards[0]
	mustGet(t, g, "k", returns("stored"))
	becomesSlow(t, g, proxy, time.Millisecond)
	redistest.Await(t, "the log says so", func() bool { return strings.Contains(text(), `calls="load first"`) })
	atHand := func() bool { return g.loaders.limits.IsAtHand(limit.Need{Spare: true}) }
	slow := func() {
		t.Helper()
		redistest.Await(t, "it is slow, and the last load has given its slot back", func() bool {
			takes(&g.loaders.cost, time.Millisecond)
			takes(g.breakers.Breaker(0), time.Minute)
			return atHand() && g.Stats().SlowParts == 1
		})
	}
	slow()
	rule := proxy.On(reading, redistest.HoldReply)
	expect.Equal(t, "without Redis", mustGet(t, g, "k", returns("loaded")), "loaded")
	scripts := proxy.On(redistest.Command("evalsha"), redistest.Hold)
	for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(20 * time.Millisecond) { // ten would show it as well as thousands
		slow()
		expect.Equal(t, "without Redis, later", mustGet(t, g, "k", returns("loaded")), "loaded")
	}
	scripts.Remove()
	rule.Remove()
	proxy.Delay(0)
	redistest.Await(t, "quick", func() bool {
		takes(&g.loaders.cost, 7*time.Second)
		takes(g.breakers.Breaker(0), time.Millisecond)
		return g.Stats().SlowParts == 0
	})
	expect.Equal(t, "from Redis", mustGet(t, g, "k", unwanted[string](t)), "stored")
}

// Nobody writes, and Gets load first: what measures then are probes.
func TestAPartThatNobodyAsksIsFoundToBeQuickAgain(t *testing.T) {
	t.Parallel()
	f, proxy := keptWaiting(t, Config{HedgeAfter: time.Hour})
	g := f.guards[0]
	becomesSlow(t, g, proxy, 400*time.Millisecond) // more than a probe takes twice on a busy machine
	proxy.Delay(0)
	redistest.Await(t, "quick", func() bool { return g.Stats().SlowParts == 0 })
}

// There, no Get takes a slot that a refresh could have.
func TestStaleValuesAreRefreshedFromASlowRedisWhereNothingIsLoadedBesideIt(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]Config{"off": {HedgeAfter: off}, "FailClosed": {HedgeAfter: off, FailClosed: true}}, func(t *testing.T, _ string, cfg Config) {
		noted, text := logged()
		cfg.TTL, cfg.StaleFor, cfg.Jitter, cfg.Logger = brief.TTL, time.Hour, -1, noted.Logger
		f := newFleet(t, standalone(t), 1, cfg).knowClock()
		g := f.guards[0]
		f.makeStale("k", "old")
		part, got := g.breakers.Breaker(0), ""
		redistest.Await(t, "it is slow, and the value new", func() bool {
			takes(part, time.Minute)
			slow := g.Stats().SlowParts == 1
			if slow {
				got = mustGet(t, g, "k", returns("new"))
			}
			return slow && got == "new"
		})
		redistest.Await(t, "the log says so", func() bool { return strings.Contains(text(), `calls="wait for it"`) })
	})
}

// What is loaded beside Redis is kept nowhere. Without the tier, each Get of a hot key would be a load for as long as Redis is slow.
func TestTheLocalTierHasWhatASlowRedisHas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour, HedgeAfter: time.Hour, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour}})
	f.listening()
	g, part := f.guards[0], f.guards[0].breakers.Breaker(0)
	mustGet(t, f.guards[1], "k", returns("stored"))
	f.stored()
	g.loaders.cost.Took(time.Millisecond)
	redistest.Await(t, "the tier has it while Redis is slow", func() bool {
		takes(part, time.Minute)
		if g.Stats().SlowParts == 0 {
			return false
		}
		got := mustGet(t, g, "k", returns("loaded"))
		return got == "stored" && g.local.Get("k") != nil && g.Stats().SlowParts == 1
	})
}

// A Get that may load nothing beside Redis waits for as long as Redis has ever needed, or a load takes, and no longer.
func TestTimeoutFollowsWhereNothingIsLoadedBesideRedis(t *testing.T) {
	t.Parallel()
	type example struct {
		hedgeAfter, load time.Duration
	}
	expect.Each(t, map[string]example{
		"off":             {off, 0},
		"off, and costly": {off, time.Second},
		"costly":          {0, time.Second},
	}, func(t *testing.T, _ string, c example) {
		proxy := redistest.StartProxy(t, shared.Addr())
		g, err := New(proxy.Client(t), Config{Prefix: t.Name(), HedgeAfter: c.hedgeAfter, RedisTimeout: bearing, follows: true, LeaseTTL: bearing})
		expect.Must(t, err)
		t.Cleanup(func() { _ = g.Close() }) // always nil
		part := g.breakers.Breaker(0)
		measured := func() bool { // much, whatever replies take on a busy machine
			for range 3000 {
				part.Took(30 * time.Millisecond)
			}
			return part.Timeout(bearing) < bearing
		}
		redistest.Await(t, "much has been measured", measured)
		if c.load > 0 {
			g.loaders.cost.Took(c.load)
			g.ordinary.kind.cost.Took(c.load)
		}
		rule := proxy.On(reading, redistest.HoldReply)
		defer rule.Remove()
		_, how, err := get(t.Context(), g, "k", returns("loaded"))
		expect.Equal(t, "outcome", how, Bypassed)
		expect.ErrorIs(t, err)
		many, err := GetMany(t.Context(), g, []string{"a", "b"}, func(_ context.Context, keys []string) (map[string]string, error) {
			expect.Equal(t, "keys of a load", len(keys), 2)
			return map[string]string{"a": "of a", "b": "of b"}, nil
		})
		expect.Equal(t, "GetMany", fmt.Sprint(many, err), "map[a:of a b:of b] <nil>")
		rule.Remove()
		doesNotAwaitATag(t, proxy, g, measured)
		expect.Equal(t, "Redis was given up", part.Recent() < bearing, true)
		expect.Equal(t, "hedged", g.Stats().Of("hedged_loads_total"), 0)
	})
}

// doesNotAwaitATag has a GetMany ask for the epoch of a tag that the Guard did not know of.
func doesNotAwaitATag(t *testing.T, proxy *redistest.Proxy, g *Guard, measured func() bool) {
	t.Helper()
	mustGet(t, newGuard(t, shared.Client(t), Config{Prefix: t.Name()}), "k", tagged("stored", "rare"))
	rule := proxy.On(func(args []string) bool {
		return reading(args) && strings.HasSuffix(args[len(args)-1], "rare")
	}, redistest.HoldReply)
	defer rule.Remove()
	redistest.Await(t, "the epoch was asked for", func() bool { // on a busy machine the first read may take too long, too
		measured()
		got, err := GetMany(t.Context(), g, []string{"k"}, func(context.Context, []string) (map[string]string, error) {
			return map[string]string{"k": "loaded"}, nil
		})
		expect.Equal(t, "GetMany", fmt.Sprint(got, err), "map[k:loaded] <nil>")
		return rule.Count() > 0
	})
}
