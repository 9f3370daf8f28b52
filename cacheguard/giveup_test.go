package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// held is a fleet with a proxy that holds up the first instance's requests for leases.
func held(t *testing.T) (f *fleet, rule *redistest.Rule) {
	t.Helper()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	f.listening()
	return f, proxy.On(steps["acquire"], redistest.Hold)
}

// idle waits until leases are given back. One may stay until it ends: if the caller sends the first request itself, and
// leaves in the middle of that, the lease is given back at once, and the proxy has the request arrive after that.
func (f *fleet) idle(call string) {
	f.t.Helper()
	redistest.Await(f.t, "no lease is held", func() bool {
		all, err := f.redis.Keys(context.Background(), f.guards[0].cfg.Prefix+":*:lease").Result()
		return err == nil && (len(all) == 0 || len(all) == 1 && call == "GetMany")
	})
}

func TestAGetManyThatIsCancelledLeavesALoadToThoseWhoJoinedIt(t *testing.T) {
	t.Parallel()
	f, rule := held(t)
	db := openShelf()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	keys := numbered(0, 300)
	many := make(chan error, 1)
	go func() { // owner: the test; ends with the GetMany; joined by receiving
		_, err := GetMany(ctx, f.guards[0], keys, db.load)
		many <- err
	}()
	<-rule.Hit()
	awaitCallers[string](f, 0, "k299", 1)
	live := async(f.guards[0], "k299", returns("own"))
	awaitCallers[string](f, 0, "k299", 2)
	cancel()
	expect.ErrorIs(t, <-many, context.Canceled)
	rule.Release()
	want(t, live, "v:k299")
	expect.Equal(t, "what was loaded", fmt.Sprint(db.calls()), "[[k299]]")
	expect.Equal(t, "value elsewhere", mustGet(t, f.guards[1], "k299", unwanted[string](t)), "v:k299")
	expect.Equal(t, "and of a key that was given up", mustGet(t, f.guards[1], "k000", returns("new")), "new")
}

func TestNothingIsLoadedForCallersThatHaveLeft(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(ctx context.Context, g *Guard, db *shelf) error{
		"GetMany": func(ctx context.Context, g *Guard, db *shelf) error {
			_, err := GetMany(ctx, g, numbered(0, 300), db.load)
			return err
		},
		"Get": func(ctx context.Context, g *Guard, db *shelf) error {
			_, err := Get(ctx, g, "k", func(ctx context.Context) (string, error) {
				values, err := db.load(ctx, []string{"k"})
				return values["k"], err
			})
			return err
		},
	}, func(t *testing.T, name string, call func(ctx context.Context, g *Guard, db *shelf) error) {
		f, rule := held(t)
		db := openShelf()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- call(ctx, f.guards[0], db) }() // owner: the test; ends with the call; joined by receiving
		<-rule.Hit()
		cancel()
		expect.ErrorIs(t, <-done, context.Canceled)
		rule.Release()
		f.idle(name) // leases that were granted all the same are given back
		expect.Equal(t, "loads", len(db.calls()), 0)
		expect.Equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
	})
}

// A loader may use the context of the request that it was made for, instead of its own.
func TestALoadThatWasCancelledFailsNobodyElse(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{LeaseTTL: time.Minute}).listening()
	request, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	first := async(f.guards[0], "k", func(context.Context) (string, error) {
		close(begun)
		<-request.Done()
		return "", request.Err()
	})
	<-begun
	joined := async(f.guards[0], "k", returns("joined"))
	awaitCallers[string](f, 0, "k", 2)
	elsewhere := async(f.guards[1], "k", returns("elsewhere"))
	f.awaitRegistered("k", 1)
	cancel()
	expect.ErrorIs(t, (<-first).err, context.Canceled)
	a, b := <-joined, <-elsewhere
	if a.err != nil || b.err != nil || a.value != b.value {
		t.Errorf("the others: %v, %v", a, b)
	}
}

// givenUpLoad is a load that nobody waits for any more once it has begun.
type givenUpLoad struct {
	*fleet
	proxy *redistest.Proxy
	begun chan struct{}
	what  func(context.Context) error // the loader makes of it
}

func (l *givenUpLoad) load(ctx context.Context) (string, error) {
	l.begun <- struct{}{}
	<-ctx.Done()
	return "", l.what(ctx)
}

func (l *givenUpLoad) many(ctx context.Context, _ []string) (map[string]string, error) {
	_, err := l.load(ctx)
	return nil, err
}

func (l *givenUpLoad) cache(t *testing.T, cfg CacheConfig[int, string]) *Cache[int, string] {
	t.Helper()
	cfg.Name = "product"
	if cfg.Load == nil {
		cfg.Load = func(ctx context.Context, _ int) (string, error) { return l.load(ctx) }
	}
	c, err := NewCache(l.guards[0], cfg)
	expect.ErrorIs(t, err)
	return c
}

// leaves makes the call, and ends its context once it loads.
func (l *givenUpLoad) leaves(t *testing.T, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { // owner: the test; ends with the call; joined by receiving
		defer close(done)
		_ = call(ctx) // what it says is its callers' matter
	}()
	<-l.begun
	cancel()
	<-done
}

// loses has the key stored, and Redis answer once the call loads beside it.
func (l *givenUpLoad) loses(t *testing.T, call func() error) {
	t.Helper()
	mustGet(t, l.guards[1], "k", returns("stored"))
	mustGet(t, l.guards[1], "l", returns("stored"))
	rule := l.proxy.On(reading, redistest.HoldReply)
	defer rule.Remove()
	done := make(chan error, 1)
	go func() { done <- call() }() // owner: the test; ends with the call; joined by receiving
	<-l.begun
	rule.Remove()
	expect.ErrorIs(t, <-done)
}

// Whichever way something is loaded, and whatever its loader makes of it: that nobody waits any more is no failure, for anybody who counts or reports loads.
func TestALoadThatNobodyWaitsForIsNoFailureForAnybody(t *testing.T) {
	t.Parallel()
	many := func(l *givenUpLoad) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := GetMany(ctx, l.guards[0], []string{"k", "l"}, l.many)
			return err
		}
	}
	ways := map[string]func(*testing.T, *givenUpLoad){
		"Get": func(t *testing.T, l *givenUpLoad) {
			l.leaves(t, func(ctx context.Context) error { _, err := Get(ctx, l.guards[0], "k", l.load); return err })
		},
		"Fetch": func(t *testing.T, l *givenUpLoad) {
			l.leaves(t, func(ctx context.Context) error {
				_, _, err := Fetch(ctx, l.guards[0], "k", Source[string]{Load: func(ctx context.Context, _ *string) (string, error) { return l.load(ctx) }})
				return err
			})
		},
		"GetMany": func(t *testing.T, l *givenUpLoad) { l.leaves(t, many(l)) },
		"GetMany, without the cache": func(t *testing.T, l *givenUpLoad) {
			l.guards[0].Bypass(true)
			l.leaves(t, many(l))
		},
		"a Cache's GetMany of Load": func(t *testing.T, l *givenUpLoad) {
			c := l.cache(t, CacheConfig[int, string]{})
			l.leaves(t, func(ctx context.Context) error { _, err := c.GetMany(ctx, []int{1}); return err })
		},
		"a Get beside Redis": func(t *testing.T, l *givenUpLoad) {
			l.loses(t, func() error { _, err := Get(t.Context(), l.guards[0], "k", l.load); return err })
		},
		"a Guard that is closed": func(t *testing.T, l *givenUpLoad) {
			done := async(l.guards[0], "k", l.load)
			<-l.begun
			_ = l.guards[0].Close() // always nil
			<-done
		},
	}
	for name, way := range ways {
		for what, err := range map[string]func(context.Context) error{
			"the error": context.Context.Err, "the cause": context.Cause,
			"an error of its own": func(context.Context) error { return errors.New("canceling statement due to user request") },
		} {
			expect.Beside(t, name+", "+what, func(t *testing.T) {
				testGivenUp(t, err, way)
			})
		}
	}
}

func testGivenUp(t *testing.T, what func(context.Context) error, way func(*testing.T, *givenUpLoad)) {
	t.Helper()
	cfg, log := logged()
	cfg.HedgeAfter = soon
	f, proxy := keptWaiting(t, cfg)
	l := &givenUpLoad{f, proxy, make(chan struct{}, 10), what}
	g := f.guards[0]
	var mu sync.Mutex
	var told []string
	tell := func(of string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if !errors.Is(err, context.Canceled) && err != nil {
			of += ", failed"
		} else if err != nil {
			of += ", given up"
		}
		told = append(told, of)
	}
	alsoTell(g, On(EventLoad, func(_ context.Context, e Event) { tell("OnLoad", e.Err) }))
	g.cfg.Hooks.Begin = func(ctx context.Context, task Task, _ []string) (context.Context, func(End)) {
		return ctx, func(e End) {
			if task == TaskLoad {
				tell("Begin", e.Err)
			}
		}
	}
	all := func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(told)
	}
	shown := look(g)
	way(t, l)
	redistest.Await(t, "its end is told", func() bool {
		s, loading := all(), g.Stats().Loading
		return loading == 0 && shown.running() == 0 && len(s) > len("[Begin]")
	})
	_ = g.Close() // always nil; it waits for loaders
	s := all()
	expect.Equal(t, "failures told: "+s, strings.Contains(s, "failed"), false)
	expect.Equal(t, "it is told: "+s, strings.Contains(s, "OnLoad, given up") && strings.Contains(s, "Begin, given up"), true)
	for _, c := range g.observed().Caches() {
		expect.Equal(t, "failed on the page", c.Failing.Failed, 0)
	}
	expect.Says(t, shown.all(), "ended:", "loaded of ")
	expect.Equal(t, "failed on the page: "+shown.all(), strings.Contains(shown.all(), ", failed"), false)
	expect.Equal(t, "failed refreshes", g.Stats().FailedRefreshes, 0)
	expect.Equal(t, "in the log", len(lines(log(), "background load failed"))+len(lines(log(), "loads fail")), 0)
}
