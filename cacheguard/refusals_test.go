package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// longestText is how many bytes an error about one bad thing may have, and a log record of it.
const longestText = 1000

// texts is a handler of log records that notes the longest.
type texts struct {
	mu      sync.Mutex
	longest string
}

func (*texts) Enabled(context.Context, slog.Level) bool { return true }
func (x *texts) WithAttrs([]slog.Attr) slog.Handler     { return x }
func (x *texts) WithGroup(string) slog.Handler          { return x }

func (x *texts) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "stack" {
			text += " " + a.String()
		}
		return true
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(text) > len(x.longest) {
		x.longest = text
	}
	return nil
}

func (x *texts) expectShort(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.longest) > longestText {
		t.Errorf("a log record has %d bytes: %.300s", len(x.longest), x.longest)
	}
}

// calls are all that take a key, a tag or a context. Each may be made with any of them.
func calls(t *testing.T, g *Guard, c *Cache[string, string]) map[string]func(ctx context.Context, name string) error {
	t.Helper()
	numbers, err := NewCache(g, CacheConfig[string, float64]{Name: "numbers", Load: func(context.Context, string) (float64, error) { return math.NaN(), nil }})
	expect.ErrorIs(t, err)
	nop := func(context.Context) error { return nil }
	begun := func(in *Intent, err error) error { return errors.Join(err, in.Done(context.Background())) }
	return map[string]func(ctx context.Context, name string) error{
		"Get":         func(ctx context.Context, name string) error { _, err := Get(ctx, g, name, returns("v")); return err },
		"Get nothing": func(ctx context.Context, name string) error { _, err := Get[string](ctx, g, name, nil); return err },
		"Cache.Get":   func(ctx context.Context, name string) error { _, err := c.Get(ctx, name); return err },
		"Fetch": func(ctx context.Context, name string) error {
			_, _, err := Fetch(ctx, g, name, Source[string]{})
			return err
		},
		"GetMany": func(ctx context.Context, name string) error {
			_, err := GetMany(ctx, g, []string{"a", name}, func(_ context.Context, keys []string) (map[string]string, error) { return map[string]string{}, nil })
			return err
		},
		"Put": func(ctx context.Context, name string) error {
			return c.Put(ctx, name, func(context.Context) (string, error) { return "v", nil })
		},
		"Put nothing":      func(ctx context.Context, name string) error { return c.Put(ctx, name, nil) },
		"Get of no number": func(ctx context.Context, name string) error { _, err := numbers.Get(ctx, name); return err },
		"Put no number": func(ctx context.Context, name string) error {
			return numbers.Put(ctx, name, func(context.Context) (float64, error) { return math.NaN(), nil }) // it cannot be encoded
		},
		"Update":         func(ctx context.Context, name string) error { return g.Update(ctx, name, nop) },
		"Update nothing": func(ctx context.Context, name string) error { return g.Update(ctx, name, nil) },
		"Update itself": func(ctx context.Context, name string) error {
			return g.Update(ctx, name, func(ctx context.Context) error { return g.Update(ctx, name, nop) })
		},
		"UpdateMany": func(ctx context.Context, name string) error { return g.UpdateMany(ctx, []string{"a", name, "z"}, nop) },
		"Also": func(ctx context.Context, name string) error {
			return g.Update(ctx, "a", func(ctx context.Context) error { return Also(ctx, Changes{Tags: []string{name}}) })
		},
		"Also, no write": func(ctx context.Context, name string) error { return Also(ctx, Changes{Keys: []string{name}}) },
		"Intend keys": func(ctx context.Context, name string) error {
			return begun(g.Intend(ctx, Changes{Keys: []string{name}}))
		},
		"Intend tags": func(ctx context.Context, name string) error {
			return begun(g.Intend(ctx, Changes{Tags: []string{name}}))
		},
		"Invalidate":     func(ctx context.Context, name string) error { return g.Invalidate(ctx, name) },
		"InvalidateTags": func(ctx context.Context, name string) error { return g.InvalidateTags(ctx, name) },
		"Warm": func(ctx context.Context, name string) error {
			_, err := c.Warm(ctx, slices.Values([]string{name}), WarmConfig{})
			return err
		},
		"Inspect":     func(ctx context.Context, name string) error { _, err := g.Inspect(ctx, name); return err },
		"BypassFleet": func(ctx context.Context, name string) error { return g.BypassFleet(ctx, -time.Duration(len(name))) },
		"SetTags": func(ctx context.Context, name string) error {
			_, err := Get(ctx, g, "tagged"+fmt.Sprint(len(name)), func(ctx context.Context) (string, error) {
				SetTags(ctx, name)
				return "v", nil
			})
			return err
		},
	}
}

// What a call is refused for, without Redis having been asked, is no failure of Redis, however often it comes.
func TestWhatIsRefusedBeforeRedisIsAskedIsNoFailureOfRedis(t *testing.T) {
	t.Parallel()
	closed := newLocks(t, shared, mutex.Config{Prefix: "closed"})
	_ = closed.Close() // always nil
	for lock, cfg := range map[string]Config{
		"its own": {}, "its own, of the fleet": {Limiter: permitsOf(2)}, "anyway": {UpdateAnyway: true}, "fail closed": {FailClosed: true},
		"a WriteLock": {WriteLock: newLocks(t, shared, mutex.Config{})}, "a closed WriteLock": {WriteLock: closed, UpdateAnyway: true},
	} {
		expect.Beside(t, lock, func(t *testing.T) {
			seen := &texts{}
			cfg.Logger = slog.New(seen)
			cfg.Observers = []Observer{
				On(EventRedisError, func(_ context.Context, e Event) { t.Errorf("a failure of Redis was told: %.300v", e.Err) }),
				On(EventBreaker, func(_ context.Context, e Event) { t.Errorf("the circuit breaker is open: %v", e.On) }),
			}
			f := newFleet(t, standalone(t), 1, cfg)
			g := f.guards[0]
			c, err := NewCache(g, CacheConfig[string, string]{Name: "things", Load: func(context.Context, string) (string, error) { return "v", nil }})
			expect.ErrorIs(t, err)
			all := calls(t, g, c)
			names := make([]string, 0, len(all))
			for name := range all {
				names = append(names, name)
			}
			slices.Sort(names)
			ended, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("enough"))
			late, stop := context.WithDeadline(t.Context(), time.Now())
			defer stop()
			seed := rand.Uint64()
			draw := rand.New(rand.NewPCG(seed, 0))
			for range expect.Samples(30, 400) {
				name := names[draw.IntN(len(names))]
				bad := []string{"", strings.Repeat("k", 65_537), "\xff" + strings.Repeat("ä", 1<<16), "good", "a b\n\x00"}[draw.IntN(5)]
				ctx := []context.Context{t.Context(), ended, late}[draw.IntN(3)]
				err := all[name](ctx, bad)
				if errors.As(err, new(*RedisError)) {
					t.Fatalf("seed %d: %s of %.40q is a failure of Redis: %.300v", seed, name, bad, err)
				}
				if err != nil && len(err.Error()) > longestText {
					t.Fatalf("seed %d: the error of %s of %.40q has %d bytes: %.300v", seed, name, bad, len(err.Error()), err)
				}
			}
			expect.Equal(t, "breakers that are open", g.Stats().BreakersOpen, 0)
			expect.Equal(t, "pending", g.Stats().Pending, 0)
			expect.Equal(t, "breakers of locks that are open", g.locks.Redis.Refused("k"), false)
			seen.expectShort(t)
		})
	}
}

// The error names what is wrong with a key that no lock can have, and neither is write called, nor a part of the keys locked.
func TestAnUpdateOfAKeyThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	for what, cfg := range map[string]Config{"": {}, "anyway": {UpdateAnyway: true}} {
		g := newFleet(t, standalone(t), 1, cfg).guards[0]
		err := g.UpdateMany(t.Context(), []string{"a", strings.Repeat("k", 65_537)}, func(context.Context) error { t.Error("write was called"); return nil })
		if Written(err) || !strings.HasPrefix(fmt.Sprint(err), `cacheguard: key "kkkk`) || !strings.HasSuffix(err.Error(), "has 65537 bytes, more than 65536") {
			t.Errorf("%s: %.300v", what, err)
		}
		expect.ErrorIs(t, g.Update(t.Context(), strings.Repeat("k", 65_536), func(context.Context) error { return nil }))
	}
}

// Nor is what the end of a context or of the Guard cuts short, though Redis has been asked.
func TestWhatIsCutShortIsNoFailureOfRedis(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[1], "k", returns("v"))
	g := newGuard(t, proxy.Client(t), Config{Prefix: f.guards[0].cfg.Prefix, Observers: []Observer{On(EventRedisError, func(_ context.Context, e Event) { t.Error(e.Err) })}})
	held := proxy.On(scriptOf("inspect"), redistest.Hold).Times(1)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // owner: the test; ends with Hit, which Inspect waits for
		<-held.Hit()
		cancel(why)
	}()
	_, err := g.Inspect(ctx, "k")
	expect.ErrorIs(t, err, context.Canceled, why)
	if errors.As(err, new(*RedisError)) {
		t.Error(err)
	}
	held.Release()
	refreshing := proxy.On(scriptOf("acquire"), redistest.Hold).Times(1)
	_, how, err := Fetch(t.Context(), g, "k", Source[string]{Judge: says(Refresh), Load: func(context.Context, *string) (string, error) { return "w", nil }})
	expect.Equal(t, "outcome", how, Stale)
	expect.ErrorIs(t, err)
	<-refreshing.Hit()
	closed := make(chan struct{})
	go func() { // owner: the test; ends with Close; joined below
		defer close(closed)
		_ = g.Close() // always nil
	}()
	<-g.life.Ending.Done()
	redistest.Await(t, "the refresh has ended", func() bool { return g.flights.Count(func(k flightKey) bool { return k.key == "k" }).Running == 0 })
	refreshing.Remove()
	<-closed
}

// While Redis fails, too, no text has more than a part of a key.
func TestErrorsAndLogRecordsHaveAPartOfALongKey(t *testing.T) {
	t.Parallel()
	for answer, closed := range map[string]bool{"LOADING Redis is loading": true, "OOM command not allowed": false} {
		expect.Beside(t, answer, func(t *testing.T) {
			seen := &texts{}
			f, proxy := broken(t, shared, Config{})
			g := newGuard(t, proxy.Client(t), Config{Prefix: f.guards[0].cfg.Prefix, FailClosed: closed, Gate: gateByContext, Logger: slog.New(seen)})
			c, err := NewCache(g, CacheConfig[string, string]{Name: "things", Load: func(context.Context, string) (string, error) { panic("no") }})
			expect.ErrorIs(t, err)
			proxy.On(reading, redistest.ReplyError(answer))
			for name, call := range calls(t, g, c) {
				for _, ctx := range []context.Context{t.Context(), withoutCache(t.Context())} {
					if err := call(ctx, strings.Repeat("k", 60_000)); err != nil && len(err.Error()) > longestText {
						t.Errorf("the error of %s has %d bytes: %.300v", name, len(err.Error()), err)
					}
				}
			}
			seen.expectShort(t)
		})
	}
}

// A password that was changed shows when a connection is made, which may be long after it was. go-redis tells it the pipeline, and no command.
func TestEveryChangeSaysThatRedisRefusesItsConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	user := []any{"acl", "setuser", "service", "on", ">secret", "~*", "&*", "+@all", "-select"} // as the line of docs/redis.md, for database 0
	expect.Equal(t, "acl", server.Client(t).Do(t.Context(), user...).Err(), nil)
	for refused, o := range map[string]redis.Options{
		"a changed password": {Username: "service", Password: "before"},
		"no right to SELECT": {Username: "service", Password: "secret", DB: 5},
		"no such database":   {DB: 1 << 20},
	} {
		for name, change := range changes {
			expect.Beside(t, name+", "+refused, func(t *testing.T) {
				o := o // the client writes its defaults into what it is given
				o.Addr = server.Addr()
				rdb := redis.NewClient(&o)
				t.Cleanup(func() { _ = rdb.Close() })
				f, db := newFleetOn(t, server.Client(t), Config{}, rdb), newRow("old")
				err := change.run(context.Background(), rows(t, f, db)[0], db, "new")
				var of *RedisError
				if !errors.As(err, &of) {
					t.Fatalf("%v, want a *RedisError", err)
				}
				written, pending := db.value.Load() == "new", f.guards[0].Stats().Pending > 0
				expect.Equal(t, "it was written, and is pending", written, pending)
				expect.Equal(t, "it began", of.begins(), !written)
			})
		}
	}
}

// So do the calls that only ask.
func TestWhatAsksForManySaysThatRedisRefusesItsConnection(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: shared.Addr(), Username: "nobody", Password: "x"})
	t.Cleanup(func() { _ = rdb.Close() })
	f := newFleetOn(t, shared.Client(t), Config{FailClosed: true}, rdb)
	g := f.guards[0]
	for name, ask := range map[string]func() error{
		"UpdateMany": func() error {
			return g.UpdateMany(context.Background(), []string{"a", "b"}, func(context.Context) error { return nil })
		},
		"Inspect": func() error { _, err := g.Inspect(context.Background(), "a"); return err },
		"GetMany": func() error {
			_, err := GetMany(context.Background(), g, []string{"a", "b"}, func(context.Context, []string) (map[string]string, error) { return nil, nil })
			return err
		},
	} {
		expect.Equal(t, name, strings.Contains(fmt.Sprint(ask()), "WRONGPASS"), true)
	}
}
