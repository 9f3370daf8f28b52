package cacheguard

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// patientFleet has Caches whose values of key 1 are stale, and whose next loads are held up.
func patientFleet(t *testing.T, n int, patience time.Duration, cfg Config) (*fleet, []*Cache[int, string], *source) {
	t.Helper()
	cfg.TTL, cfg.StaleFor, cfg.Jitter = brief.TTL, brief.StaleFor, brief.Jitter
	f := newFleet(t, standalone(t), n, cfg).knowClock().listening()
	db := newSource("old")
	caches := newCaches(t, f, CacheConfig[int, string]{
		Name: "thing", Load: func(ctx context.Context, _ int) (string, error) { return db.load(ctx) }, Patience: patience,
	})
	db.release <- struct{}{}
	expect.Equal(t, "the first value", must(caches[0].Get(context.Background(), 1)), "old")
	<-db.begun
	for _, g := range f.guards {
		f.awaitState(g, "thing:1", stale)
	}
	redistest.Await(t, "it is well past its TTL by the server, too", func() bool {
		return f.redis.PTTL(context.Background(), f.value("thing:1")).Val() < brief.StaleFor-brief.TTL
	})
	db.value.Store("new")
	return f, caches, db
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func asyncThing[V any](ctx context.Context, c *Cache[int, V], k int) <-chan reply[V] {
	got := make(chan reply[V], 1)
	go func() { // owner: the test; ends with the Get; joined by receiving
		v, err := c.Get(ctx, k)
		got <- reply[V]{v, err}
	}()
	return got
}

func (f *fleet) awaitWaiting(i, n int) {
	f.t.Helper()
	redistest.Await(f.t, "calls wait", func() bool { return f.guards[i].Stats().Waiting == n })
}

func TestAPatientGetGetsTheFreshValueThatComesInTime(t *testing.T) {
	t.Parallel()
	f, caches, db := patientFleet(t, 2, time.Minute, Config{})
	here, there := asyncThing(context.Background(), caches[0], 1), asyncThing(context.Background(), caches[1], 1)
	<-db.begun
	f.awaitRegistered("thing:1", 1)
	db.release <- struct{}{}
	want(t, here, "new")
	want(t, there, "new")
	expect.Equal(t, "loads", db.loads.Load(), 2)
	expect.Equal(t, "stale", f.events.count(Stale), 0)
}

func TestAPatientGetGetsTheStaleValueWhenItsPatienceEndsAndTheLoadGoesOn(t *testing.T) {
	t.Parallel()
	f, caches, db := patientFleet(t, 1, time.Millisecond, Config{})
	redistest.Await(t, "a load", func() bool { // its lease may take longer than the patience of a Get
		expect.Equal(t, "while it loads", must(caches[0].Get(context.Background(), 1)), "old")
		return len(db.begun) > 0
	})
	expect.Equal(t, "still", must(caches[0].Get(context.Background(), 1)), "old")
	db.release <- struct{}{}
	redistest.Await(t, "the load's value", func() bool {
		raw, _ := f.redis.Get(context.Background(), f.guards[0].keys.ValueKey("thing:1")).Result()
		return strings.Contains(raw, "new")
	})
	expect.Equal(t, "loads", db.loads.Load(), 2)
}

func TestAThousandPatientCallersThatAllGiveUpLeaveTheLoadToItself(t *testing.T) {
	t.Parallel()
	f, caches, db := patientFleet(t, 1, time.Minute, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const callers = 1000
	all := make([]<-chan reply[string], callers)
	for i := range all {
		all[i] = asyncThing(ctx, caches[0], 1)
	}
	<-db.begun
	f.awaitWaiting(0, callers)
	cancel()
	for _, c := range all {
		expect.ErrorIs(t, (<-c).err, context.Canceled)
	}
	expect.Equal(t, "loaders that run", f.guards[0].Stats().Loading, 1)
	db.release <- struct{}{}
	redistest.Await(t, "nothing runs", func() bool { return f.guards[0].flights.Count(nil).Running == 0 })
	expect.Equal(t, "loads", db.loads.Load(), 2)
	expect.Equal(t, "errors of the load", f.guards[0].Stats().FailedRefreshes, 0)
}

func TestALoadThatFailsForPatientCallersIsLoggedAndCountedAndTheyGetTheStaleValue(t *testing.T) {
	t.Parallel()
	cfg, log := logged()
	f := newFleet(t, standalone(t), 1, Config{TTL: brief.TTL, StaleFor: brief.StaleFor, Jitter: -1, Logger: cfg.Logger}).knowClock()
	broken := false
	c := newCaches(t, f, CacheConfig[int, string]{Name: "thing", Patience: time.Minute, Load: func(context.Context, int) (string, error) {
		if broken {
			return "", errors.New("database is down")
		}
		return "old", nil
	}})[0]
	expect.Equal(t, "the first value", must(c.Get(context.Background(), 1)), "old")
	f.stored()
	broken = true
	f.awaitState(f.guards[0], "thing:1", stale)
	redistest.Await(t, "it is counted", func() bool { // the server may still think it fresh for a moment
		expect.Equal(t, "value", must(c.Get(context.Background(), 1)), "old")
		return f.guards[0].Stats().FailedRefreshes > 0
	})
	if f.events.count(Stale) == 0 {
		t.Error("no stale value was counted")
	}
	_ = f.guards[0].Close()
	expect.Says(t, log(), "background load failed", "database is down")
}

func TestPatientLoadsTakeNoSlotThatOthersWaitFor(t *testing.T) {
	t.Parallel()
	f, caches, db := patientFleet(t, 1, time.Minute, Config{MaxLoads: 1})
	g := f.guards[0]
	others := newSource("other")
	first := async(g, "first", others.load)
	<-others.begun
	patient := asyncThing(context.Background(), caches[0], 1)
	redistest.Await(t, "a patient Get waits", func() bool {
		select {
		case early := <-patient: // nobody promises that it waits: it may find nothing to wait for
			t.Log("a patient Get did not wait: ", early)
			patient = asyncThing(context.Background(), caches[0], 1)
		default:
		}
		return g.Stats().Waiting == 2
	})
	second := async(g, "second", others.load)
	redistest.Await(t, "the second load queues", func() bool { return g.Stats().Queued == 1 })
	others.release <- struct{}{}
	want(t, first, "other")
	<-others.begun // the second one, although the patient Get came first
	expect.Equal(t, "loads of the patient Get", len(db.begun), 0)
	others.release <- struct{}{}
	want(t, second, "other")
	<-db.begun
	db.release <- struct{}{}
	want(t, patient, "new")
}

func TestWithoutASlotToSparePatienceEndsWithoutALoad(t *testing.T) {
	t.Parallel()
	f, caches, db := patientFleet(t, 1, 5*time.Millisecond, Config{MaxLoads: 1})
	others := newSource("other")
	first := async(f.guards[0], "first", others.load)
	<-others.begun
	expect.Equal(t, "value", must(caches[0].Get(context.Background(), 1)), "old")
	redistest.Await(t, "only the other load is left", func() bool { return f.guards[0].flights.Count(nil).Running == 1 })
	others.release <- struct{}{}
	want(t, first, "other")
	expect.Equal(t, "loads", db.loads.Load(), 1)
}
