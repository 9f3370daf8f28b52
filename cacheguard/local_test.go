package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var withLocal = Config{Local: LocalConfig{MaxEntries: 1000, TTL: time.Hour}}

// keptBy waits until guard i answers from its tier, after the tier has been filled.
func (f *fleet) keptBy(i int, key, value string) {
	f.t.Helper()
	f.listening()
	redistest.Await(f.t, "the tier has the value", func() bool {
		v, how, err := get(context.Background(), f.guards[i], key, returns(value))
		return err == nil && v == value && how == Local
	})
}

func TestLocalTierAnswersWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, arena{client: func(tb testing.TB) client { return server.Client(tb) }}, 1, withLocal)
	f.keptBy(0, "k", "v")
	before := server.Commands()["mget"]
	for range 100 {
		expect.Equal(t, "value", mustGet(t, f.guards[0], "k", unwanted[string](t)), "v")
	}
	expect.Equal(t, "reads", server.Commands()["mget"]-before, 0)
	values, err := GetMany(context.Background(), f.guards[0], []string{"k", "other"}, openShelf().load)
	expect.Equal(t, "values", fmt.Sprint(values, err), "map[k:v other:v:other] <nil>")
	expect.Equal(t, "local", f.events.count(Local) >= 101, true)
	bytes := mustGet(t, f.guards[0], "k", unwanted[[]byte](t))
	expect.Equal(t, "as another type", string(bytes), "v")
}

func TestACacheWithNoLocalIsNeitherServedFromTheTierNorFillsIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{Local: withLocal.Local, StaleFor: time.Hour}).listening()
	db := newRow("old")
	load := func(ctx context.Context, _ int) (string, error) { return db.load(ctx) }
	strict := newCaches(t, f, CacheConfig[int, string]{Name: "strict", Load: load, NoLocal: true})
	quick := newCaches(t, f, CacheConfig[int, string]{Name: "quick", Load: load})
	peek := func(c *Cache[int, string]) string {
		v, how, err := c.Peek(ctx, 1)
		return fmt.Sprint(v, " ", how, " ", err)
	}
	for i := range f.guards {
		redistest.Await(t, "the tier has what may be there", func() bool {
			_, err := strict[i].Get(ctx, 1)
			_, err2 := quick[i].GetMany(ctx, []int{1})
			return errors.Join(err, err2) == nil && peek(quick[i]) == "old local <nil>"
		})
		values, err := strict[i].GetMany(ctx, []int{1})
		expect.Equal(t, "values", fmt.Sprint(values, err), "map[1:old] <nil>")
		expect.Equal(t, "by Redis", peek(strict[i]), "old hit <nil>")
		expect.Equal(t, "the tier has it", f.guards[i].local.Has(strict[i].Key(1)), false)
		expect.Equal(t, "the tier has the other", f.guards[i].local.Has(quick[i].Key(1)), true)
	}
	expect.Equal(t, "Update", strict[0].Update(ctx, 1, db.write("new")), nil)
	v, err := strict[1].Get(ctx, 1)
	expect.Equal(t, "on the other instance, at once", fmt.Sprint(v, err), "new<nil>")
}

func TestAbsenceIsKeptLocallyToo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, withLocal).listening()
	absent := func(context.Context) (string, error) { return "", ErrNotFound }
	for range 3 {
		expect.ErrorIs(t, expect.Err(Get(context.Background(), f.guards[0], "k", absent)), ErrNotFound)
	}
	expect.Equal(t, "kept", f.guards[0].local.Get("k") != nil, true)
	_, how, err := get(context.Background(), f.guards[0], "k", unwanted[string](t))
	expect.Equal(t, "answer", fmt.Sprint(how, err), fmt.Sprint(Negative, ErrNotFound))
}

func TestInvalidateReachesEveryTier(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(*testing.T) arena{
		"standalone": standalone, "cluster": onCluster, "sentinel": onSentinel,
	}, func(t *testing.T, _ string, a func(*testing.T) arena) {
		f := newFleet(t, a(t), 3, withLocal)
		writer := newGuard(t, f.redis, Config{Prefix: f.guards[0].cfg.Prefix}) // has no tier of its own
		for i, key := range []string{"a", "b", "c", "d"} {
			for j := range f.guards {
				f.keptBy(j, key, "old")
			}
			by := writer
			if i < 3 {
				by = f.guards[i]
			}
			mustInvalidate(t, by, key)
			if i < 3 {
				_, how, _ := get(context.Background(), by, key, returns("new"))
				expect.Equal(t, "on the instance that invalidated", how, Loaded)
			}
			for j, g := range f.guards {
				redistest.Await(t, fmt.Sprintf("tier %d has heard of it", j), func() bool {
					return mustGet(t, g, key, returns("new")) == "new"
				})
			}
		}
	})
}

func TestGetDoesNotRefillTheTierWithWhatWasInvalidatedMeanwhile(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	f := newFleetOn(t, shared.Client(t), Config{Local: withLocal.Local, RedisTimeout: bearing}, proxy.Client(t), shared.Client(t)).listening()
	mustGet(t, f.guards[1], "k", returns("old"))
	held := proxy.On(func(args []string) bool { return reading(args) && slices.Contains(args, f.value("k")) }, redistest.HoldReply).Times(1)
	early := async(f.guards[0], "k", unwanted[string](t))
	<-held.Hit()
	mustInvalidate(t, f.guards[1], "k")
	mustGet(t, f.guards[1], "k", returns("new"))
	f.heard(0)
	held.Release()
	want(t, early, "old") // it had begun before
	expect.Equal(t, "later", mustGet(t, f.guards[0], "k", unwanted[string](t)), "new")
	expect.Equal(t, "later still", mustGet(t, f.guards[0], "k", unwanted[string](t)), "new")
}

// heard returns when guard i has taken in all that was published so far.
func (f *fleet) heard(i int) {
	f.t.Helper()
	expect.Must(f.t, f.guards[i].SelfCheck(redistest.Patiently(f.t)))
}

func TestTierIsNotServedFromWhileItsSubscriptionIsDownAndEmptyAfterwards(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, withLocal)
	f.keptBy(0, "k", "old")
	subscribing := proxy.On(redistest.Command("subscribe"), redistest.Hold)
	proxy.Cut()
	redistest.Await(t, "the inbox is down", func() bool { return !f.guards[0].inbox.Live() })
	mustInvalidate(t, f.guards[1], "k")
	mustGet(t, f.guards[1], "k", returns("new"))
	expect.Equal(t, "while it is down", mustGet(t, f.guards[0], "k", unwanted[string](t)), "new")
	subscribing.Remove()
	subscribing.Release()
	f.keptBy(0, "k", "new")
}

func TestTierIsVoidWhenANoticeIsLost(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, withLocal)
	f.keptBy(0, "k", "old")
	g := f.guards[0]
	send := func(number uint64) {
		n := tier.Notice{Source: "another", Number: number, Key: "x"}
		expect.Must(t, f.redis.Publish(context.Background(), g.notices.Channel, n.String()).Err())
	}
	number := uint64(1)
	send(number)
	redistest.Await(t, "a notice that comes late, but is waited for", func() bool { // at most for a second
		f.keptBy(0, "k", "old")
		number += 2
		send(number)
		f.heard(0)
		_, how, err := get(context.Background(), g, "k", unwanted[string](t))
		expect.Equal(t, "while one is missing", fmt.Sprintf("%v %v", how, err), "hit <nil>")
		send(number - 1)
		f.heard(0)
		_, how, err = get(context.Background(), g, "k", unwanted[string](t))
		return err == nil && how == Local
	})
	send(number + 2)
	redistest.Await(t, "the tier is void", func() bool { return g.local.GetAnyway("k") == nil })
}

func TestTierAnswersWithStaleValuesWhenRedisDoesNot(t *testing.T) {
	t.Parallel()
	cfg := withLocal
	cfg.StaleFor, cfg.FailClosed = time.Hour, true
	f, proxy := broken(t, shared, cfg)
	f.keptBy(0, "k", "v")
	f.keptBy(0, "gone", "v")
	proxy.Refuse(true)
	redistest.Await(t, "the inbox is down", func() bool { return !f.guards[0].inbox.Live() })
	v, how, err := get(context.Background(), f.guards[0], "k", unwanted[string](t))
	expect.Equal(t, "answer", fmt.Sprintf("%v %v %v", v, how, err), "v stale <nil>")
	values, err := GetMany(context.Background(), f.guards[0], []string{"k"}, newShelf().load)
	expect.Equal(t, "values", fmt.Sprint(values, err), "map[k:v] <nil>")

	expect.Fails(t, f.guards[0].Invalidate(context.Background(), "gone"))
	expect.Fails(t, expect.Err(Get(context.Background(), f.guards[0], "gone", unwanted[string](t))))
	proxy.Refuse(false)
	redistest.Await(t, "Redis answers again", func() bool {
		_, how, err := get(context.Background(), f.guards[0], "k", unwanted[string](t))
		return err == nil && how == Hit
	})
}

func TestLocalCopiesLiveNoLongerThanTheirEntries(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, withLocal).listening()
	var loads atomic.Int64
	load := func(ctx context.Context) (int64, error) {
		SetTTL(ctx, 50*time.Millisecond)
		return loads.Add(1), nil
	}
	redistest.Await(t, "the value is replaced", func() bool { return mustGet(t, f.guards[0], "k", load) == 3 })
}

// Guards without a tier do not write down how long an entry is fresh.
func TestLocalCopiesOfEntriesOfAGuardWithoutATierLiveNoLongerEither(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, withLocal).listening()
	plain := newGuard(t, f.redis, Config{Prefix: f.guards[0].cfg.Prefix, TTL: 200 * time.Millisecond, NegativeTTL: off})
	key := ""
	for i := 0; key == "" || mustGet(t, f.guards[0], key, returns("its own")) != "old"; i++ { // on a busy machine it may have expired
		key = fmt.Sprint("k", i)
		mustGet(t, plain, key, returns("old"))
	}
	redistest.Await(t, "it has expired", func() bool { return !f.exists(f.value(key)) })
	expect.Equal(t, "value", mustGet(t, f.guards[0], key, returns("new")), "new")
}

// In the process that invalidates there is no delay at all, however many callers read at the same time.
func TestOneReadsItsOwnWritesThroughTheTier(t *testing.T) {
	t.Parallel()
	cfg := withLocal
	cfg.RedisTimeout = bearing
	f := newFleet(t, standalone(t), 2, cfg).listening()
	var version atomic.Int64
	load := func(context.Context) (int64, error) { return version.Load(), nil }
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, g := range f.guards {
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						mustGet(t, g, "k", load)
						pause(time.Millisecond) // hits of a tier would take the processors
					}
				}
			})
		}
	}
	for range 200 {
		v := version.Add(1)
		mustInvalidate(t, f.guards[0], "k")
		if got := mustGet(t, f.guards[0], "k", load); got < v {
			t.Errorf("read %d after %d was written", got, v)
		}
	}
	close(stop)
	readers.Wait()
	expect.Equal(t, "some were local", f.events.count(Local) > 0, true)
	f.heard(1)
	expect.Equal(t, "at rest", mustGet(t, f.guards[1], "k", load), version.Load())
}

// Two keys share a request, in which the tag of one is known, so its epoch is read. The other one has the tag, too, which only shows in the answer.
func TestTheTierKeepsNothingByAnEpochThatWasReadForAnotherKey(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(f *fleet){
		"a tag, elsewhere": func(f *fleet) { mustInvalidateTags(f.t, f.guards[1], "t") },
		"a tag, here":      func(f *fleet) { mustInvalidateTags(f.t, f.guards[0], "t") },
		"an intent, here": func(f *fleet) {
			in, err := f.guards[0].Intend(context.Background(), Changes{Tags: []string{"t"}})
			if err == nil {
				err = in.Done(context.Background())
			}
			expect.Must(f.t, err)
		},
	}, func(t *testing.T, _ string, invalidate func(f *fleet)) {
		proxy := redistest.StartProxy(t, shared.Addr())
		f := newFleetOn(t, shared.Client(t), Config{Local: withLocal.Local, RedisTimeout: bearing}, proxy.Client(t), shared.Client(t)).listening()
		mustGet(t, f.guards[0], "known", tagged("old", "t"))
		mustGet(t, f.guards[1], "unknown", tagged("old", "t"))
		held := proxy.On(func(args []string) bool {
			return args[0] == "mget" && slices.Contains(args, f.guards[0].keys.ValueKey("unknown"))
		}, redistest.HoldReply).Times(1)
		early := asyncMany(f.guards[0], []string{"known", "unknown"}, func(ctx context.Context, missing []string) (map[string]string, error) {
			SetTags(ctx, "t")
			values := make(map[string]string)
			for _, key := range missing {
				values[key] = "new"
			}
			return values, nil
		})
		<-held.Hit()
		invalidate(f)
		f.heard(0)
		held.Release()
		expect.Must(t, (<-early).err)
		for _, key := range []string{"known", "unknown"} {
			expect.Equal(t, key+", later", mustGet(t, f.guards[0], key, tagged("new", "t")), "new")
		}
	})
}
