package cacheguard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func client(tb testing.TB, hooks ...redis.Hook) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: cacheguard.SharedAddr()})
	for _, h := range hooks {
		rdb.AddHook(h)
	}
	tb.Cleanup(func() { _ = rdb.Close() }) // all is done
	return rdb
}

// GetManys that give up, all the time, while every read takes its time: none of them takes a read with it that others wait for.
func TestAGetManyThatGivesUpHoldsUpNeitherABystanderNorClose(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	guard := g.guard(client(t, slow(func(cmds []redis.Cmder) time.Duration {
		if isRead(cmds) {
			return 600 * time.Millisecond
		}
		return 0
	})), cacheguard.Config{RedisTimeout: 4 * time.Second, HedgeAfter: -1}) // else a load may answer in time
	cache := g.things(guard)
	var all sync.WaitGroup
	for round := range 40 {
		all.Go(func() { // owner: the test; ends with ctx; joined below
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			expect.ErrorIs(t, expect.Err(cache.GetMany(ctx, []int{1000 + round, 2000 + round})), context.DeadlineExceeded)
		})
		<-time.After(5 * time.Millisecond)
		all.Go(func() { // owner: the test; ends with its Get, which has no deadline; joined below
			expect.ErrorIs(t, expect.Err(cache.Get(context.Background(), round)))
		})
		<-time.After(35 * time.Millisecond)
	}
	all.Wait()
	_ = guard.Close() // returns
}

// The reply of each request of a Guard in turn is late, while another one invalidates.
func TestNoLateReplyKeepsAnOldValueBeyondAnInvalidation(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(*cacheguard.Guard, *cacheguard.Cache[int, int64]) error{
		"all": func(guard *cacheguard.Guard, _ *cacheguard.Cache[int, int64]) error {
			return guard.InvalidateAll(context.Background())
		},
		"kind": func(_ *cacheguard.Guard, cache *cacheguard.Cache[int, int64]) error {
			return cache.InvalidateAll(context.Background())
		},
		"one tag": func(guard *cacheguard.Guard, _ *cacheguard.Cache[int, int64]) error {
			return guard.InvalidateTags(context.Background(), "all")
		},
	} {
		for nth := range 8 {
			if !expect.Drawn(3) {
				continue
			}
			expect.Beside(t, fmt.Sprint(name, " ", nth), func(t *testing.T) {
				g := newGround(t)
				proxy := redistest.StartProxy(t, cacheguard.SharedAddr())
				var seen atomic.Int64
				rule := proxy.On(func(args []string) bool {
					switch args[0] {
					case "hello", "client", "subscribe", "ping":
						return false
					}
					return seen.Add(1) > int64(nth) // a script that the server does not know is passed over
				}, redistest.HoldReply).Times(1)
				cfg := cacheguard.Config{RedisTimeout: 4 * time.Second}
				reader, writer := g.guard(proxy.Client(t), cfg), g.guard(client(t), cfg)
				things, theirs := g.things(reader), g.things(writer)
				beside(8, func() {
					g.read(func() (int64, error) { return things.Get(context.Background(), rand.N(10)) })
				}, func() {
					<-rule.Hit()
					late := time.AfterFunc(450*time.Millisecond, rule.Release)
					defer late.Stop()
					g.write(func() error { return invalidate(writer, theirs) })
					<-time.After(500 * time.Millisecond)
					g.write(func() error { return invalidate(writer, theirs) })
					<-time.After(50 * time.Millisecond)
				})
				g.over()
			})
		}
	}
}

// A tier that keeps its values for minutes hides nothing from the instance that invalidates, not even what that was reading meanwhile.
func TestTheInstanceThatInvalidatesAllServesNothingOldFromItsTier(t *testing.T) {
	t.Parallel()
	const readers = 4
	for _, c := range []struct{ kind, late, many bool }{
		{kind: true}, {kind: true, late: true}, {kind: true, many: true}, {}, {late: true}, {many: true}, {late: true, many: true},
	} {
		if !expect.Drawn(2) {
			continue
		}
		expect.Beside(t, fmt.Sprintf("%+v", c), func(t *testing.T) {
			g, things := newGround(t), 300
			if c.many {
				things = expect.Samples(500, 1500)
			}
			var reads atomic.Int64
			delay := func(cmds []redis.Cmder) time.Duration {
				if c.late && isRead(cmds) && reads.Add(1)%20 == 10 {
					return 100 * time.Millisecond
				}
				return 0
			}
			guard := g.guard(client(t, slowReply(delay)), cacheguard.Config{
				TTL: time.Hour, RedisTimeout: 4 * time.Second, Local: cacheguard.LocalConfig{MaxEntries: 100_000, TTL: 10 * time.Minute},
			})
			other := g.things(g.guard(client(t), cacheguard.Config{TTL: time.Hour, RedisTimeout: 4 * time.Second, StaleFor: time.Second}))
			cache, ids := g.things(guard), make([]int, things)
			for i := range ids {
				ids[i] = i
			}
			// pass reads every thing once.
			pass := func() {
				var all sync.WaitGroup
				for r := range readers {
					all.Go(func() { // owner: the test; ends with its Gets; joined below
						if c.many {
							least := g.least.Load()
							got, err := cache.GetMany(context.Background(), ids)
							if err != nil || len(got) != len(ids) {
								t.Error(len(got), err)
							}
							for _, v := range got {
								g.check("a GetMany", least, v)
							}
							return
						}
						for id := r; id < things; id += readers {
							g.read(func() (int64, error) { return cache.Get(context.Background(), id) })
						}
					})
				}
				all.Wait()
			}
			for range expect.Samples(1, 3) {
				if _, err := other.GetMany(context.Background(), ids); err != nil { // so that Redis has them all
					t.Fatal(err)
				}
				invalidated := make(chan struct{})
				go func() { // owner: the test; ends with the invalidation; joined below
					defer close(invalidated)
					<-time.After(rand.N(60 * time.Millisecond))
					g.write(func() error {
						if c.kind {
							return cache.InvalidateAll(context.Background())
						}
						return guard.InvalidateAll(context.Background())
					})
				}()
				pass()
				<-invalidated
				pass()
			}
			g.over()
		})
	}
}

// Whatever was refused is sent again while Gets read; this instance has promised to serve nothing old from its error on.
func TestAnInvalidationThatIsSentAgainWhileAGetReadsIsHeeded(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(*cacheguard.Guard, *cacheguard.Cache[int, int64]) error{
		"all": func(guard *cacheguard.Guard, _ *cacheguard.Cache[int, int64]) error {
			return guard.InvalidateAll(context.Background())
		},
		"kind": func(_ *cacheguard.Guard, cache *cacheguard.Cache[int, int64]) error {
			return cache.InvalidateAll(context.Background())
		},
		"a tag": func(guard *cacheguard.Guard, _ *cacheguard.Cache[int, int64]) error {
			return guard.InvalidateTags(context.Background(), "all")
		},
		"keys": func(_ *cacheguard.Guard, cache *cacheguard.Cache[int, int64]) error {
			return cache.Invalidate(context.Background(), 0, 1, 2, 3, 4)
		},
	} {
		for _, local := range []bool{false, true} {
			if !expect.Drawn(2) {
				continue
			}
			expect.Beside(t, fmt.Sprint(name, ", a tier: ", local), func(t *testing.T) {
				g := newGround(t)
				proxy := redistest.StartProxy(t, cacheguard.SharedAddr())
				rdb := proxy.Client(t)
				rdb.AddHook(slow(func(cmds []redis.Cmder) time.Duration {
					if isRead(cmds) {
						return rand.N(30 * time.Millisecond)
					}
					return 0
				}))
				cfg := cacheguard.Config{TTL: time.Hour}
				if local {
					cfg.Local = cacheguard.LocalConfig{MaxEntries: 1000, TTL: 10 * time.Minute}
				}
				guard := g.guard(rdb, cfg)
				other := g.guard(client(t), cacheguard.Config{TTL: time.Hour}) // keeps old values in Redis
				cache, theirs := g.things(guard), g.things(other)
				refused := 0
				beside(4, func() {
					g.read(func() (int64, error) { return cache.Get(context.Background(), rand.N(5)) })
				}, func() {
					for range 5 {
						for id := range 5 {
							expect.ErrorIs(t, expect.Err(theirs.Get(context.Background(), id)))
						}
						rule := proxy.On(func(args []string) bool {
							return args[0] == "evalsha" || args[0] == "eval" || args[0] == "del" || args[0] == "set" || args[0] == "incr"
						},
							redistest.ReplyError("LOADING Redis is loading the dataset in memory"))
						g.write(func() error {
							err := invalidate(guard, cache)
							if err != nil {
								refused++
							}
							return err
						})
						<-time.After(rand.N(20 * time.Millisecond))
						rule.Remove()
						redistest.Await(t, "nothing is pending", func() bool { return guard.Stats().Pending == 0 })
						<-time.After(rand.N(40 * time.Millisecond))
					}
				})
				g.over()
				if refused == 0 {
					t.Error("nothing was refused")
				}
			})
		}
	}
}

func TestAnInsertAndItsTagEndAbsenceOnEveryInstance(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var born atomic.Int64 // things with a smaller number exist
	open := func() *cacheguard.Cache[int64, int64] {
		cache, err := cacheguard.NewCache(g.guard(client(t), cacheguard.Config{NegativeTTL: time.Minute}), cacheguard.CacheConfig[int64, int64]{
			Name: "thing", AbsentTags: func(int64) []string { return []string{"births"} },
			Load: func(_ context.Context, id int64) (int64, error) {
				if id >= born.Load() {
					return 0, cacheguard.ErrNotFound
				}
				return id, nil
			},
		})
		expect.Must(t, err)
		return cache
	}
	caches, writer := []*cacheguard.Cache[int64, int64]{open(), open()}, g.guard(client(t), cacheguard.Config{})
	var told atomic.Int64
	beside(6, func() {
		exist := told.Load()
		id := max(0, exist-2+rand.Int64N(4))
		_, err := caches[rand.N(2)].Get(context.Background(), id)
		g.gets.Add(1)
		if err != nil && (id < exist || !errors.Is(err, cacheguard.ErrNotFound)) {
			t.Errorf("thing %d of %d: %v", id, exist, err)
		}
	}, func() {
		for range 200 {
			n := born.Add(1)
			g.write(func() error { return writer.InvalidateTags(context.Background(), "births") })
			told.Store(n)
			<-time.After(rand.N(4 * time.Millisecond))
		}
	})
	g.over()
}

// A Get that is reading when its Guard is closed may fail, but it knows no less than another whether the value is valid.
func TestAGetThatReadsWhileItsGuardIsClosedReturnsNothingInvalidated(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{"by the call", "with others"} {
		expect.Beside(t, "a read that is sent "+sent, func(t *testing.T) {
			g := newGround(t)
			expect.Must(t, expect.Err(g.things(g.guard(client(t), cacheguard.Config{})).Get(t.Context(), 1)))
			redistest.Await(t, "the value is stored", func() bool { return client(t).Exists(t.Context(), g.prefix+":{thing:1}").Val() == 1 })
			g.write(func() error { return g.guard(client(t), cacheguard.Config{}).InvalidateTags(t.Context(), "all") })

			proxy := redistest.StartProxy(t, cacheguard.SharedAddr())
			held := proxy.On(func(args []string) bool { return args[0] == "mget" }, redistest.HoldReply).Times(1)
			guard := g.guard(proxy.Client(t), cacheguard.Config{RedisTimeout: 4 * time.Second}) // knows no tags
			cache, calls := g.things(guard), 1
			if sent == "with others" {
				calls = 3
			}
			got := make(chan error, calls)
			for range calls {
				go func() { // owner: the test; ends with the Get; joined below
					v, err := cache.Get(context.Background(), 1)
					if err == nil {
						g.check("a Get", g.least.Load(), v)
					}
					got <- err
				}()
			}
			<-held.Hit()
			closed := make(chan struct{})
			go func() { // owner: the test; ends with Close; joined below
				defer close(closed)
				_ = guard.Close() // always nil
			}()
			redistest.Await(t, "the Guard is being closed", func() bool {
				_, err := cacheguard.Get(context.Background(), guard, "another", g.load)
				return errors.Is(err, cacheguard.ErrClosed)
			})
			held.Release()
			for range calls {
				if err := <-got; err != nil && !errors.Is(err, cacheguard.ErrClosed) {
					t.Error(err)
				}
			}
			<-closed
		})
	}
}
