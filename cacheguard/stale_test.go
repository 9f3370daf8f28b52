package cacheguard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch"
)

// knowClock makes the guards know the server's clock.
func (f *fleet) knowClock() *fleet {
	f.t.Helper()
	for _, g := range f.guards {
		g.serverClocks.Age("k", time.Now())
		redistest.Await(f.t, "the server's clock is known", func() bool { return g.knowsClock("k") })
	}
	return f
}

// makeStale stores a value and waits until it is stale. The guards' TTL is a few milliseconds.
func (f *fleet) makeStale(key, value string) {
	f.t.Helper()
	mustGet(f.t, f.guards[0], key, returns(value))
	f.awaitState(f.guards[0], key, stale)
}

// awaitState waits until the Guard finds the stored value in that state. Other Guards may estimate the time a little differently.
func (f *fleet) awaitState(g *Guard, key string, want state) {
	f.t.Helper()
	redistest.Await(f.t, "the value has aged", func() bool {
		raw, err := f.redis.Get(context.Background(), f.value(key)).Bytes()
		e, _ := protocol.DecodeEntry(key, raw)
		return err == nil && g.freshness("k", &g.ordinary, e) == want
	})
}

var brief = Config{TTL: 20 * time.Millisecond, StaleFor: time.Minute, Jitter: -1}

func TestARefreshThatFailsKeepsTheStaleValueAndBacksOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, brief).knowClock()
	f.makeStale("k", "old")
	var begun atomic.Int64
	fail := func(context.Context) (string, error) {
		begun.Add(1)
		return "", errors.New("database is down")
	}
	redistest.Await(t, "the failure is remembered", func() bool {
		expect.Equal(t, "value", mustGet(t, f.guards[0], "k", fail), "old")
		return prolongFailure(f.redis, f.lease("k"))
	})
	before := begun.Load()
	for range 20 {
		expect.Equal(t, "value", mustGet(t, f.guards[1], "k", fail), "old")
	}
	expect.Equal(t, "loads while it is remembered", begun.Load()-before, 0)
}

// prolongFailure makes Redis remember for an hour that a load failed, and reports whether it does so at all.
func prolongFailure(rdb redis.Scripter, lease string) bool {
	prolonged, err := rdb.Eval(context.Background(), `
		if redis.call('HEXISTS', KEYS[1], 'failed') == 0 or redis.call('HEXISTS', KEYS[1], 'token') == 1 then
			return 0
		end
		if redis.call('EXPIRE', KEYS[2], 3600) == 0 then -- its text has gone
			return 0
		end
		redis.call('HSET', KEYS[1], 'deadline', (redis.call('TIME')[1] + 3600) * 1000, 'length', 3600000)
		return redis.call('EXPIRE', KEYS[1], 3600)`, []string{lease, lease + ":error"}).Int()
	return err == nil && prolonged == 1
}

func TestAStaleValueDisappearsWhenStaleForIsOver(t *testing.T) {
	t.Parallel()
	cfg := brief
	cfg.StaleFor = time.Hour
	f := newFleet(t, standalone(t), 1, cfg)
	mustGet(t, f.guards[0], "k", returns("v"))
	ttl := f.redis.PTTL(context.Background(), f.value("k")).Val()
	if ttl <= 59*time.Minute || ttl > time.Hour+cfg.TTL {
		t.Errorf("TTL in Redis: %v", ttl)
	}
}

func TestAGuardWithoutStaleForDoesNotServeStaleValues(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, brief).knowClock()
	f.makeStale("k", "old")
	strict := newGuard(t, shared.Client(t), Config{Prefix: f.guards[0].cfg.Prefix})
	f.awaitState(strict, "k", expired)
	expect.Equal(t, "value", mustGet(t, strict, "k", returns("new")), "new")
	expect.Equal(t, "value", mustGet(t, strict, "k", unwanted[string](t)), "new")
	expect.Equal(t, "damaged", f.events.damaged.Load(), 0)
}

func TestABackgroundLoadIsJoinedByClose(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, brief).knowClock()
	f.makeStale("k", "old")
	db := newSource("new")
	f.refreshes("k", db)
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.Equal(t, "held", f.held("k"), false)
}

// refreshes serves the stale value until a background load has begun: one may give up on a busy machine.
func (f *fleet) refreshes(key string, db *source) {
	f.t.Helper()
	redistest.Await(f.t, "a background load", func() bool {
		expect.Equal(f.t, "value", mustGet(f.t, f.guards[0], key, db.load), "old")
		select {
		case <-db.begun:
			return true
		default:
			return false
		}
	})
}

func TestBackgroundLoadsStayBelowMaxLoads(t *testing.T) {
	t.Parallel()
	cfg := brief
	cfg.MaxLoads = 1
	f := newFleet(t, standalone(t), 1, cfg).knowClock()
	f.makeStale("a", "old")
	f.makeStale("b", "old")
	db := newSource("new")
	f.refreshes("a", db)
	expect.Equal(t, "b", mustGet(t, f.guards[0], "b", db.load), "old")
	redistest.Await(t, "the refresh of b gave up", func() bool {
		return f.guards[0].flights.Count(only(flightKey{key: "b", shape: protocol.ShapeOf[string]{}, mode: background})).Callers == 0
	})
	expect.Equal(t, "loads", db.loads.Load(), 1)
	close(db.release)
}

// Each throw says yes with a probability of exp(-left / (beta * took)).
func TestEarlyRefreshReplacesAnEntryThatIsStillFresh(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Minute, Jitter: -1, EarlyRefresh: 100}).knowClock()
	g := f.guards[0]
	e := protocol.Entry{Fresh: time.Minute, Took: time.Second}
	drawn := 0
	for range 1000 { // beta * took is 100 s, so about exp(-0.6) of the dice fall so early
		if g.freshness("k", &g.ordinary, protocol.Entry{Fresh: e.Fresh, Took: e.Took, Written: serverNow(t, f)}) == ageing {
			drawn++
		}
	}
	if drawn < 400 || drawn > 700 {
		t.Errorf("%d of 1000 drawn", drawn)
	}
	head, tail := protocol.EncodeEntry("k", protocol.Entry{Kind: protocol.Raw, Fresh: time.Minute, Took: time.Hour, Stamp: stampOn(t, g, "k"), Payload: []byte("old")}, rand.Text()) // hours of loading: all say yes
	raw := fmt.Sprintf("%s%s%s", head, writtenAt(serverNow(t, f)), tail)
	expect.Must(t, f.redis.Set(context.Background(), f.value("k"), raw, time.Minute).Err())
	expect.Equal(t, "value", mustGet(t, g, "k", returns("new")), "old")
	redistest.Await(t, "the entry is replaced", func() bool { return mustGet(t, g, "k", returns("new")) == "new" })
	expect.Equal(t, "stale", f.events.count(Stale), 0)
}

func serverNow(t *testing.T, f *fleet) time.Time {
	t.Helper()
	now, err := f.redis.Time(context.Background()).Result()
	expect.Must(t, err)
	return now
}

func TestAClockThatIsWrongDoesNotMakeEntriesStale(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("CACHEGUARD_TEST_BEHIND") // its clock is: seen from there, this machine is two days ahead
	if addr == "" {
		t.Skip("the tests of package memory run it")
	}
	a := arena{client: func(tb testing.TB) client {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		tb.Cleanup(func() { _ = rdb.Close() }) // always nil
		return rdb
	}}
	f := newFleet(t, a, 1, Config{TTL: time.Hour, StaleFor: time.Hour}).knowClock()
	mustGet(t, f.guards[0], "k", returns("v"))
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", unwanted[string](t)), "v")
	expect.Equal(t, "hits", f.events.count(Hit), 1)
}

func TestAStaleValueReadByALoaderTakesNoSlotForGood(t *testing.T) {
	t.Parallel()
	cfg := brief
	cfg.MaxLoads = 2
	f := newFleet(t, standalone(t), 1, cfg).knowClock()
	g := f.guards[0]
	for i := range 4 {
		inner := fmt.Sprint("inner", i)
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
		_, err := Get(ctx, g, inner, returns("old"))
		if err != nil {
			t.Fatalf("after %d nested refreshes: %v", i, err)
		}
		f.awaitState(g, inner, stale)
		_, err = Get(ctx, g, fmt.Sprint("outer", i), func(ctx context.Context) (string, error) {
			return Get(ctx, g, inner, returns("new"))
		})
		cancel()
		if err != nil {
			t.Fatalf("outer, after %d nested refreshes: %v", i, err)
		}
	}
}

func TestAbsenceFoundInTheBackgroundIsNoFailure(t *testing.T) {
	t.Parallel()
	noted, log := logged()
	cfg := brief
	cfg.Logger = noted.Logger
	f := newFleet(t, standalone(t), 1, cfg).knowClock()
	f.makeStale("k", "old")
	_, _ = Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) { return "", ErrNotFound })
	redistest.Await(t, "absence is known", func() bool {
		_, err := Get(context.Background(), f.guards[0], "k", func(context.Context) (string, error) { return "", ErrNotFound })
		return errors.Is(err, ErrNotFound)
	})
	_ = f.guards[0].Close()
	if strings.Contains(log(), string(watch.Unrefreshed)) {
		t.Error(log())
	}
}

func TestATTLBelowAMillisecondIsStaleNotFreshForEver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{StaleFor: time.Hour, Jitter: -1}).knowClock()
	mustGet(t, f.guards[0], "k", func(ctx context.Context) (string, error) { SetTTL(ctx, 300*time.Microsecond); return "v", nil })
	hold(t, 20*time.Millisecond)
	mustGet(t, f.guards[0], "k", returns("w"))
	expect.Equal(t, "stale", f.events.count(Stale), 1)
}
