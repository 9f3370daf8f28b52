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

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The RedisTimeout and the LeaseTTL of tests that are about other things, and of those in which the time has to be up.
const (
	bearing = redistest.Patience
	brisk   = redistest.Brisk
)

// tagged is a loader whose value has tags.
func tagged[V any](v V, tags ...string) func(context.Context) (V, error) {
	return func(ctx context.Context) (V, error) {
		SetTags(ctx, tags...)
		return v, nil
	}
}

// loadTagged is the source's load with tags.
func (s *source) loadTagged(tags ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		SetTags(ctx, tags...)
		return s.load(ctx)
	}
}

func mustInvalidateTags(t *testing.T, g *Guard, tags ...string) {
	t.Helper()
	expect.Must(t, g.InvalidateTags(context.Background(), tags...))
}

func promiseInvalidateAll(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing})
	keys := numbered(0, 20)
	for i, key := range keys {
		mustGet(t, f.guards[i%2], key, returns("old"))
	}
	for _, key := range keys {
		expect.Equal(t, key, mustGet(t, f.guards[1], key, unwanted[string](t)), "old")
	}
	other := newFleet(t, a, 1, Config{RedisTimeout: bearing}) // of another Prefix
	mustGet(t, other.guards[0], "k", returns("old"))
	defer func() {
		expect.Equal(t, "another Prefix", mustGet(t, other.guards[0], "k", unwanted[string](t)), "old")
	}()
	db := newSource("old")
	first := async(f.guards[0], "under way", db.load)
	<-db.begun
	expect.Must(t, f.guards[0].InvalidateAll(context.Background()))
	joined := async(f.guards[0], "under way", returns("new"))
	awaitCallers[string](f, 0, "under way", 2)
	waits := async(f.guards[1], "under way", returns("new"))
	close(db.release)
	want(t, first, "old")
	want(t, joined, "new")
	want(t, waits, "new")
	for _, key := range keys {
		expect.Equal(t, key, mustGet(t, f.guards[1], key, returns("new")), "new")
		expect.Equal(t, key, mustGet(t, f.guards[0], key, unwanted[string](t)), "new")
	}
}

func promiseTagsReachAllEntries(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing})
	for i := range 8 {
		mustGet(t, f.guards[i%2], fmt.Sprint("k", i), tagged("old", "all", fmt.Sprint("parity:", i%2)))
	}
	mustGet(t, f.guards[0], "none", returns("old"))
	mustInvalidateTags(t, f.guards[1], "parity:1", "of nothing")
	for i := range 8 {
		want := []string{"old", "new"}[i%2]
		for _, g := range f.guards {
			expect.Equal(t, fmt.Sprint("k", i), mustGet(t, g, fmt.Sprint("k", i), tagged("new", "all", fmt.Sprint("parity:", i%2))), want)
		}
	}
	mustInvalidateTags(t, f.guards[0], "all")
	for i := range 8 {
		expect.Equal(t, fmt.Sprint("k", i), mustGet(t, f.guards[1], fmt.Sprint("k", i), returns("newer")), "newer")
	}
	expect.Equal(t, "without tags", mustGet(t, f.guards[1], "none", unwanted[string](t)), "old")
}

func promiseTagsOfALoadUnderWay(t *testing.T, a arena) {
	expect.Each(t, map[string]bool{"a tag seen for the first time": false, "a tag of the entry before": true}, func(t *testing.T, _ string, known bool) {
		f := newFleet(t, a, 2, Config{RedisTimeout: bearing})
		if known {
			mustGet(t, f.guards[0], "k", tagged("older", "t"))
			mustInvalidateTags(t, f.guards[0], "t")
		}
		db := newSource("old")
		first := async(f.guards[0], "k", db.loadTagged("t"))
		<-db.begun
		mustInvalidateTags(t, f.guards[1], "t")
		joined := async(f.guards[0], "k", tagged("new", "t")) // begins afterwards
		awaitCallers[string](f, 0, "k", 2)
		close(db.release)
		want(t, first, "old")
		want(t, joined, "new")
		f.stored()
		for _, g := range f.guards {
			expect.Equal(t, "afterwards", mustGet(t, g, "k", tagged("new", "t")), "new")
		}
	})
}

func promiseTagsOfAnotherInstancesLoad(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing}).listening()
	db := newSource("old")
	first := async(f.guards[0], "k", db.loadTagged("t"))
	<-db.begun
	mustInvalidateTags(t, f.guards[1], "t")
	waits := async(f.guards[1], "k", tagged("new", "t"))
	f.awaitRegistered("k", 1)
	close(db.release)
	want(t, first, "old")
	want(t, waits, "new")
}

func promiseManyWithTags(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing})
	load := func(text string) func(context.Context, []string) (map[string]string, error) {
		return func(ctx context.Context, keys []string) (map[string]string, error) {
			SetTags(ctx, "t")
			all := make(map[string]string)
			for _, key := range keys {
				all[key] = text
			}
			return all, nil
		}
	}
	keys := []string{"a", "b", "c"}
	for round, text := range []string{"old", "new"} {
		for _, g := range f.guards {
			got, err := getManyOn(context.Background(), g, keys, load(text))
			f.stored()
			expect.Equal(t, "error", err, nil)
			expect.Equal(t, fmt.Sprint("round ", round), fmt.Sprint(got), fmt.Sprintf("map[a:%[1]s b:%[1]s c:%[1]s]", text))
		}
		mustInvalidateTags(t, f.guards[1], "t")
	}
}

func TestAnEpochThatWasLostMakesItsEntriesInvalid(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[0], "k", tagged("old", "t"))
	key := f.guards[0].epochs.Key(epoch.OfTag("t"), 0)
	expect.Returns(t, int64(1), nil)(f.redis.Del(context.Background(), key).Result())
	expect.Equal(t, "with the epoch evicted", mustGet(t, f.guards[1], "k", tagged("new", "t")), "new")
	expect.Equal(t, "afterwards", mustGet(t, f.guards[0], "k", unwanted[string](t)), "new")
}

func TestTagsOfOthersThatAreInvalidatedAllTheTimeDoNotKeepAKeyFromBeingStored(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[0], "warm", tagged("v", "x"))
	loads := 0
	load := func(ctx context.Context) (string, error) {
		loads++
		SetTags(ctx, "t")
		return "v", f.guards[0].InvalidateTags(ctx, "of others")
	}
	for range 4 {
		mustGet(t, f.guards[0], "k", load)
	}
	expect.Equal(t, "loads", loads, 2)
}

func TestAStaleValueIsNotServedWhenATagOfItWasInvalidated(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, TTL: time.Millisecond, StaleFor: time.Hour, Jitter: -1})
	mustGet(t, f.guards[0], "k", tagged("old", "t"))
	mustInvalidateTags(t, f.guards[0], "t")
	expect.Equal(t, "value", mustGet(t, f.guards[0], "k", tagged("new", "t")), "new")
}

func TestTheLocalTierDropsWhatHasAnInvalidatedTag(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour}, TTL: time.Hour}).listening()
	read := func(g *Guard, text string) Outcome {
		v, how, err := get(context.Background(), g, "k", tagged(text, "t"))
		if err != nil || v != text {
			t.Fatalf("%q, %v", v, err)
		}
		return how
	}
	mustGet(t, f.guards[0], "k", tagged("old", "t"))
	for _, g := range f.guards {
		expect.Equal(t, "from Redis", read(g, "old"), Hit)
		expect.Equal(t, "from memory", read(g, "old"), Local)
	}
	mustInvalidateTags(t, f.guards[0], "t")
	expect.Equal(t, "here, at once", read(f.guards[0], "new"), Loaded)
	f.stored()
	redistest.Await(t, "the other instance has the new one", func() bool {
		v, _, err := get(context.Background(), f.guards[1], "k", tagged("new", "t"))
		return err == nil && v == "new"
	})
}

func TestTagsThatNoEntryCanHaveAreRefusedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	many := make([]string, maxTags+1)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	for name, tags := range map[string][]string{
		"empty": {"a", ""}, "too long": {strings.Repeat("x", maxTag+1)}, "too many": many,
	} {
		before := f.events.unstorable.Load()
		expect.Equal(t, name, mustGet(t, f.guards[0], name, tagged("v", tags...)), "v")
		f.stored()
		expect.Equal(t, name+": told", f.events.unstorable.Load(), before+1)
		expect.Equal(t, name+": stored", f.exists(f.value(name)), false)
	}
	expect.Equal(t, "the largest", mustGet(t, f.guards[0], "most", tagged("v", many[1:]...)), "v")
	expect.Equal(t, "is stored", mustGet(t, f.guards[0], "most", unwanted[string](t)), "v")
	mustGet(t, f.guards[0], "k", tagged("old", "good"))
	expect.Fails(t, f.guards[0].InvalidateTags(context.Background(), "", "good", strings.Repeat("x", maxTag+1)))
	expect.Equal(t, "the good tag", mustGet(t, f.guards[0], "k", tagged("new", "good")), "new")
}

func TestAnInvalidationOfATagThatFailedIsPendingAndTheGuardDoesNotServeWhatHasIt(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	g := f.guards[0]
	mustGet(t, g, "k", tagged("old", "t"))
	mustGet(t, g, "other", tagged("old", "u"))
	rule := proxy.On(scriptOf("revoke"), redistest.ReplyError("READONLY for a while"))
	expectRedisError(t, g.InvalidateTags(context.Background(), "t"), "", "t")
	expect.Equal(t, "pending", g.Stats().Pending, 1)
	expect.Equal(t, "with the tag", mustGet(t, g, "k", tagged("new", "t")), "new")
	expect.Equal(t, "without it", mustGet(t, g, "other", unwanted[string](t)), "old")
	rule.Remove()
	redistest.Await(t, "nothing is pending", func() bool { return g.Stats().Pending == 0 })
	expect.Equal(t, "afterwards", mustGet(t, g, "k", tagged("newest", "t")), "newest")
}

func TestWhatATagMadeInvalidIsNotShownToTheLoaderThatReplacesIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[0], "k", tagged("old", "t"))
	judged := false
	v, _, err := Fetch(context.Background(), f.guards[0], "k", Source[string]{
		Judge: func(string) Verdict { // it was read, and is valid
			judged = true
			mustInvalidateTags(t, f.guards[0], "t")
			return Replace
		},
		Load: func(_ context.Context, old *string) (string, error) {
			if old != nil {
				t.Errorf("the loader sees %q", *old)
			}
			return "new", nil
		},
	})
	expect.Equal(t, "judged", judged, true)
	expect.Equal(t, "value", v, "new")
	expect.Equal(t, "error", err, nil)
}

// An entry belongs to its kind. Another caller of its key leaves it alone, and is left alone.
func TestAnEntryOfACacheIsNoneOfTheFunctionGetsAndTheOtherWayRound(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing})
	load := func(text string) func(context.Context, int) (string, error) {
		return func(context.Context, int) (string, error) { return text, nil }
	}
	users := newCaches(t, f, CacheConfig[int, string]{Name: "user", Load: load("of the cache")})
	get := func(c *Cache[int, string], id int) string { v, _ := c.Get(ctx, id); f.stored(); return v }
	get(users[0], 42)
	expect.Equal(t, "by its key", mustGet(t, f.guards[1], "user:42", returns("raw")), "raw")
	many, err := GetMany(ctx, f.guards[1], []string{"user:42"}, func(context.Context, []string) (map[string]string, error) {
		return map[string]string{"user:42": "raw"}, nil
	})
	expect.Equal(t, "by its key, among many", fmt.Sprint(many, err), "map[user:42:raw] <nil>")
	loads := f.events.loads.Load()
	expect.Equal(t, "of the Cache", get(users[1], 42), "of the cache")
	expect.Equal(t, "loads", f.events.loads.Load(), loads)

	mustGet(t, f.guards[0], "user:7", returns("raw"))
	expect.Equal(t, "of the Cache, by its key", get(users[1], 7), "of the cache")
	expect.Equal(t, "what was stored", mustGet(t, f.guards[1], "user:7", unwanted[string](t)), "raw")
}

func TestTheLocalTierServesAnEntryToItsKindOnly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFleet(t, standalone(t), 1, Config{
		RedisTimeout: bearing, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour}, TTL: time.Hour, NegativeTTL: time.Hour,
	}).listening()
	loadFor := func(text string) func(context.Context, int) (string, error) {
		return func(context.Context, int) (string, error) { return text, nil }
	}
	users := newCaches(t, f, CacheConfig[int, string]{Name: "user", Load: loadFor("of the Cache")})[0]
	get := func(c *Cache[int, string]) string { v, err := c.Get(ctx, 42); return fmt.Sprint(v, err) }
	for i := range 10 { // they come into the tier in turns
		expect.Equal(t, fmt.Sprint(i, " by its key"), mustGet(t, f.guards[0], "user:42", returns("raw")), "raw")
		expect.Equal(t, fmt.Sprint(i, " of the Cache"), get(users), "of the Cache<nil>")
		many, err := users.GetMany(ctx, []int{42, 43})
		expect.Equal(t, fmt.Sprint(i, " among many"), fmt.Sprint(many, err), "map[42:of the Cache 43:of the Cache] <nil>")
		f.stored()
	}
}

func TestTheLocalTierKeepsNothingThatInvalidateAllRemoved(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour}, TTL: time.Hour}).listening()
	for _, g := range f.guards {
		mustGet(t, g, "k", returns("old"))
		mustGet(t, g, "k", returns("old"))
		mustGet(t, g, "k", returns("old"))
	}
	expect.Must(t, f.guards[0].InvalidateAll(context.Background()))
	expect.Equal(t, "here", mustGet(t, f.guards[0], "k", returns("new")), "new")
	redistest.Await(t, "the notice has come", func() bool {
		v, err := Get(context.Background(), f.guards[1], "k", returns("new"))
		return err == nil && v == "new"
	})
}

func TestTagsAreInvalidatedWhenRedisIsFull(t *testing.T) {
	t.Parallel()
	a, s := onServer(t)
	f := newFleet(t, a, 2, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[0], "k", tagged("old", "t"))
	f.redis.ConfigSet(context.Background(), "maxmemory", "1")
	mustInvalidateTags(t, f.guards[0], "t")
	expect.Equal(t, "while it is full", mustGet(t, f.guards[1], "k", tagged("new", "t")), "new")
	f.redis.ConfigSet(context.Background(), "maxmemory", "0")
	expect.Equal(t, "afterwards", mustGet(t, f.guards[1], "k", tagged("newer", "t")), "newer")
	expect.Equal(t, "and again", mustGet(t, f.guards[0], "k", unwanted[string](t)), "newer")
	_ = s
}

func TestAnInvalidationOfTagsThatIsSentTwiceOrWhoseReplyIsLostIsDone(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"revoke", "make"} {
		for _, fault := range []redistest.Fault{redistest.DropReply, redistest.CutBefore} {
			expect.Beside(t, step+", "+string(fault), func(t *testing.T) {
				f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
				mustGet(t, f.guards[1], "k", tagged("old", "t"))
				rule := proxy.On(scriptOf(step), fault).Times(1)
				mustInvalidateTags(t, f.guards[0], "t")
				expect.Equal(t, "here", mustGet(t, f.guards[0], "k", tagged("new", "t")), "new")
				expect.Equal(t, "there", mustGet(t, f.guards[1], "k", tagged("new", "t")), "new")
				<-rule.Hit()
			})
		}
	}
}

func TestAThousandCallersThatGiveUpLeaveATaggedHitToTheOneWhoStays(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{RedisTimeout: bearing})
	mustGet(t, f.guards[0], "k", tagged("v", "t"))
	tag := f.guards[0].epochs.Key(epoch.OfTag("t"), 0)
	held := proxy.On(func(args []string) bool { return slices.Contains(args, tag) }, redistest.HoldReply).Times(1)
	ctx, cancel := context.WithCancel(context.Background())
	var left sync.WaitGroup
	for range 1000 {
		left.Go(func() {
			if _, err := Get(ctx, f.guards[0], "k", unwanted[string](t)); !errors.Is(err, context.Canceled) && err != nil {
				t.Error(err)
			}
		})
	}
	stays := async(f.guards[0], "k", unwanted[string](t))
	<-held.Hit()
	cancel()
	left.Wait()
	held.Release()
	want(t, stays, "v")
	expect.Equal(t, "failures of Redis", f.events.redisErrors.Load(), 0)
}
