package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// trip makes reads fail until the Guard stops asking Redis.
func trip(t *testing.T, g *Guard) {
	t.Helper()
	opened := g.breakers.Of(g.keys.ValueKey("trip")).Opened()
	redistest.Await(t, "Redis is not asked any more", func() bool {
		mustGet(t, g, "trip", returns(0))
		select {
		case <-opened:
			return true
		default:
			return false
		}
	})
}

func TestARedisThatDoesNotAnswerIsNotAsked(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var changes []bool
	cfg := Config{}
	f, proxy := broken(t, shared, cfg)
	cfg.Prefix = f.guards[0].cfg.Prefix
	cfg.Observers = []Observer{On(EventBreaker, func(_ context.Context, e Event) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, e.On)
	})}
	g := newGuard(t, proxy.Client(t), cfg)
	mustGet(t, g, "k", returns("v"))
	loading := proxy.On(reading, redistest.ReplyError("LOADING Redis is loading"))
	trip(t, g)
	asked := loading.Count()
	const calls = 1000
	for i := range calls {
		expect.Equal(t, "value", mustGet(t, g, fmt.Sprint("other", i), returns(i)), i)
	}
	if n := loading.Count() - asked; n > calls/10 {
		t.Errorf("Redis was asked %d times", n)
	}
	loading.Remove()
	redistest.Await(t, "Redis is asked again", func() bool {
		_, how, err := get(context.Background(), g, "k", returns("w"))
		return err == nil && how == Hit
	})
	mu.Lock()
	defer mu.Unlock()
	if len(changes) == 0 || !changes[0] || changes[len(changes)-1] {
		t.Errorf("hooks got %v", changes)
	}
}

func TestNobodyWaitsForAnotherInstanceWhenRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{LeaseTTL: time.Minute})
	f.listening()
	db := newSource("theirs")
	theirs := async(f.guards[1], "k", db.load)
	<-db.begun
	ours := async(f.guards[0], "k", returns("ours"))
	f.awaitRegistered("k", 1)
	proxy.On(reading, redistest.ReplyError("LOADING Redis is loading"))
	trip(t, f.guards[0])
	want(t, ours, "ours")
	close(db.release)
	want(t, theirs, "theirs")
}

// Whatever a call was about when Redis stopped answering, and whichever way it asks: a key has one loader, and each call gets a value.
func TestAKeyHasOneLoaderWhenRedisStopsAnswering(t *testing.T) {
	t.Parallel()
	many := func(g *Guard, load func(context.Context) (string, error)) <-chan reply[string] {
		c := make(chan reply[string], 1)
		go func() { // owner: the test; ends with the GetMany; joined by receiving
			all, err := GetMany(context.Background(), g, []string{"k", "beside"}, func(ctx context.Context, keys []string) (map[string]string, error) {
				all := map[string]string{"beside": "v"}
				var err error
				if slices.Contains(keys, "k") {
					all["k"], err = load(ctx)
				}
				return all, err
			})
			c <- reply[string]{all["k"], err}
		}()
		return c
	}
	one := func(g *Guard, load func(context.Context) (string, error)) <-chan reply[string] {
		return async(g, "k", load)
	}
	type ask = func(*Guard, func(context.Context) (string, error)) <-chan reply[string]
	type example struct {
		first, later ask
		waits        bool // the first for another instance
	}
	expect.Each(t, map[string]example{
		"Get": {first: one, later: one}, "GetMany": {first: many, later: many}, "Get, GetMany": {first: one, later: many}, "GetMany, Get": {first: many, later: one},
		"a Get that waits": {first: one, later: one, waits: true}, "a GetMany that waits": {first: many, later: one, waits: true},
	}, func(t *testing.T, _ string, c example) {
		f, proxy := broken(t, shared, Config{LeaseTTL: time.Minute})
		f.listening()
		g, db, theirs := f.guards[0], newSource("v"), newSource("v")
		down := redistest.ReplyError("LOADING Redis is loading")
		var first, other <-chan reply[string]
		if c.waits {
			other = async(f.guards[1], "k", theirs.load)
			<-theirs.begun
			first = c.first(g, db.load)
			f.awaitRegistered("k", 1)
		} else {
			proxy.On(steps["acquire"], down)
			first = c.first(g, db.load)
			<-db.begun
		}
		proxy.On(reading, down)
		trip(t, g)
		if c.waits {
			<-db.begun
		}
		later := c.later(g, db.load)
		bypassed := flightKey{key: "k", shape: protocol.ShapeOf[string]{}, mode: direct}
		redistest.Await(t, "the later one waits for the load of the first, or loads", func() bool {
			return g.flights.Count(only(bypassed)).Callers == 2 || db.loads.Load() > 1
		})
		expect.Equal(t, "loads at a time", db.loads.Load(), 1)
		close(db.release)
		close(theirs.release)
		want(t, first, "v")
		want(t, later, "v")
		if c.waits {
			want(t, other, "v")
		}
		expect.Equal(t, "loads", db.loads.Load(), 2) // nothing proves that none has invalidated it
	})
}

func TestWithFailClosedAnOpenBreakerIsARedisError(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{FailClosed: true})
	rule := proxy.On(reading, redistest.ReplyError("LOADING Redis is loading"))
	for range 200 {
		expectRedisError(t, expect.Err(Get(context.Background(), f.guards[0], "k", unwanted[int](t))), "", "k")
	}
	if rule.Count() > 100 {
		t.Errorf("Redis was asked %d times", rule.Count())
	}
}

func TestWritesFailAtOnceWhileTheBreakerIsOpenAndInvalidationsArePending(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	g := f.guards[0]
	prices, err := NewCache(g, CacheConfig[string, string]{Name: "prices", Load: func(context.Context, string) (string, error) { return "", nil }})
	expect.Equal(t, "error", err, nil)
	mustGet(t, f.guards[1], "k", returns("old"))
	ctx := context.Background()
	begun, err := g.Intend(ctx, Changes{})
	expect.Equal(t, "error", err, nil)
	ended, err := g.Intend(ctx, Changes{Keys: []string{"k5"}, Tags: []string{"tag5"}})
	expect.Equal(t, "error", err, nil)
	down := proxy.On(reading, redistest.ReplyError("LOADING Redis is loading"))
	trip(t, g)
	before := proxy.Commands()["evalsha"]
	unwritten := func(context.Context) error { t.Error("write was called"); return nil }
	for name, write := range map[string]func() error{
		"Invalidate":          func() error { return g.Invalidate(ctx, "k") },
		"InvalidateTags":      func() error { return g.InvalidateTags(ctx, "tag") },
		"InvalidateAll":       func() error { return g.InvalidateAll(ctx) },
		"Cache.InvalidateAll": func() error { return prices.InvalidateAll(ctx) },
		"Update":              func() error { return g.Update(ctx, "k2", unwritten) },
		"UpdateMany":          func() error { return g.UpdateMany(ctx, []string{"k3", "k4"}, unwritten) },
		"Put": func() error {
			return prices.Put(ctx, "k", func(ctx context.Context) (string, error) { return "", unwritten(ctx) })
		},
		"Cache.Invalidate": func() error { return prices.Invalidate(ctx, "a") },
		"Cache.Update":     func() error { return prices.Update(ctx, "a", unwritten) },
		"Intend": func() error {
			_, err := g.Intend(ctx, Changes{Keys: []string{"k6"}})
			return err
		},
		"Intend of a tag": func() error {
			_, err := g.Intend(ctx, Changes{Tags: []string{"tag6"}})
			return err
		},
		"Intent.Also": func() error { return begun.Also(ctx, Changes{Keys: []string{"k7"}}) },
		"Intent.Done": func() error { return ended.Done(ctx) },
	} {
		err := write()
		var failed *RedisError
		if !errors.As(err, &failed) || !errors.Is(failed, breaker.ErrOpen) || !strings.Contains(err.Error(), breaker.ErrOpen.Error()+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	expect.Equal(t, "scripts that were sent", proxy.Commands()["evalsha"]-before, 0)
	expect.Equal(t, "pending", g.writes.Pending(), 7)
	expect.Equal(t, "failures that hooks hear of", f.events.redisErrors.Load() <= 20, true)
	down.Remove()
	redistest.Await(t, "nothing is pending", func() bool { return g.writes.Pending() == 0 })
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

func TestUpdateAnywayWritesAtOnceWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{UpdateAnyway: true})
	proxy.On(reading, redistest.ReplyError("LOADING Redis is loading"))
	trip(t, f.guards[0])
	before := proxy.Commands()["evalsha"]
	written := 0
	err := f.guards[0].Update(context.Background(), "k", func(context.Context) error { written++; return nil })
	expect.Equal(t, "errors of the invalidation", errors.Is(err, breaker.ErrOpen), true)
	expect.Equal(t, "written", written, 1)
	expect.Equal(t, "scripts that were sent", proxy.Commands()["evalsha"]-before, 0)
	f.events.quiet = true
}

// A process that only writes finds out too.
func TestWritesThatFailOpenTheBreaker(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	expect.Each(t, map[string]func(*Guard) error{
		"Invalidate":     func(g *Guard) error { return g.Invalidate(ctx, "k") },
		"InvalidateTags": func(g *Guard) error { return g.InvalidateTags(ctx, "tag") },
		"Update":         func(g *Guard) error { return g.Update(ctx, "k", func(context.Context) error { return nil }) },
	}, func(t *testing.T, _ string, write func(*Guard) error) {
		f, proxy := broken(t, shared, Config{})
		f.events.quiet = true
		for _, command := range []string{"evalsha", "del", "get"} {
			proxy.On(redistest.Command(command), redistest.ReplyError("LOADING Redis is loading"))
		}
		redistest.Await(t, "a write is refused", func() bool { return errors.Is(write(f.guards[0]), breaker.ErrOpen) })
	})
}

func TestCloseSendsWhatIsPendingAlsoWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	mustGet(t, f.guards[1], "k", returns("old"))
	proxy.On(reading, redistest.ReplyError("LOADING Redis is loading"))
	trip(t, f.guards[0])
	expect.ErrorIs(t, f.guards[0].Invalidate(context.Background(), "k"), breaker.ErrOpen)
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

func TestInvalidateOfManyKeysGivesUpWhenRedisAnswersToNothing(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: brisk}) // nothing is answered, however long it is; in the end, all has to be
	rule := proxy.On(scriptOf("invalidate"), redistest.SwallowReply)
	keys := numbered(0, 10*1024)
	f.events.quiet = true
	err := f.guards[0].Invalidate(context.Background(), keys...)
	joined, _ := err.(interface{ Unwrap() []error })
	expect.Equal(t, "errors", len(joined.Unwrap()), len(keys))
	expect.Equal(t, "lines of the text", strings.Count(err.Error(), "\n")+1, 11)
	expect.Equal(t, "it gave up, though a batch may have been sent again since", rule.Count() < len(keys)/2, true)
	expect.Equal(t, "pending", f.guards[0].writes.Pending(), len(keys))
	rule.Remove()
	redistest.Await(t, "nothing is pending", func() bool { return f.guards[0].writes.Pending() == 0 })
}

// distant is a hook that delays each pipeline.
type distant time.Duration

func (distant) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (distant) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (d distant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		<-time.After(time.Duration(d))
		return next(ctx, cmds)
	}
}

// Together, the pipelines of its keys take longer than RedisTimeout; none of them does alone.
func TestGetManyOfThousandsOfKeysIsNotTakenForAFailureOfRedis(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	rdb.AddHook(distant(100 * time.Millisecond))
	f := newFleetOn(t, shared.Client(t), Config{RedisTimeout: brisk}, rdb)
	keys := numbered(0, 30*128)
	values, err := GetMany(context.Background(), f.guards[0], keys, openShelf().load)
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "values", len(values), len(keys))
	expect.Equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
	expect.Equal(t, "loaded", f.events.count(Loaded), len(keys))
}
