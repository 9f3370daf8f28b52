package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/watch"
	"github.com/cacheguard/go/rwlock"
)

func (f *fleet) intents(key string) string { return f.value(key) + ":until" }

// left is when Redis expires a key; below 0: never, or there is none.
func (f *fleet) left(key string) time.Duration {
	f.t.Helper()
	left, err := f.redis.PTTL(context.Background(), key).Result()
	expect.Must(f.t, err)
	return left
}

func TestNothingOfAKeyOutlastsAnIntent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour, StaleFor: time.Hour, LeaseTTL: time.Minute})
	within := func(what, key string) {
		t.Helper()
		if left := f.left(key); left <= 0 || left > 2*time.Minute {
			t.Errorf("%s: %v", what, left)
		}
	}
	g := f.guards[0]
	mustGet(t, g, "cached", returns("v"))
	slow := newSource("v")
	before := async(g, "before", slow.load)
	<-slow.begun
	keys := []string{"cached", "before", "during", "update"}
	long := mustIntend(t, f.guards[1], Changes{Keys: keys})
	within("a value from before", f.value("cached"))
	within("the lease of a load from before", f.lease("before"))
	during := async(g, "during", slow.load)
	<-slow.begun
	within("the lease of a load that began under it", f.lease("during"))
	g.keeper.RenewAll()
	within("that, renewed", f.lease("during"))
	within("the other, renewed", f.lease("before"))
	close(slow.release)
	want(t, before, "v")
	want(t, during, "v")
	f.stored()
	within("what the load from before stored", f.value("before"))
	within("what the other stored", f.value("during"))
	c := newCaches(t, f, CacheConfig[int, string]{Name: "row", Load: func(context.Context, int) (string, error) { return "v", nil }})[0]
	in := mustIntend(t, f.guards[1], Changes{Keys: []string{rowKey}})
	expect.Equal(t, "Put", c.Put(context.Background(), 1, func(context.Context) (string, error) { return "put", nil }), nil)
	within("what a Put stored", f.value(rowKey))
	mustDone(t, in)

	another := mustIntend(t, f.guards[0], Changes{Keys: keys})
	mustDone(t, another)
	expect.Equal(t, "the first one stands", f.exists(f.intents("cached")), true)
	mustGet(t, g, "cached", returns("w"))
	within("a value stored under the first", f.value("cached"))
	mustDone(t, long)
	mustGet(t, g, "cached", returns("x"))
	expect.Equal(t, "none stands", f.exists(f.intents("cached")), false)
	if left := f.left(f.value("cached")); left < 3*time.Minute {
		t.Errorf("without an intent, it lasts %v", left)
	}
}

func TestAnEpochOutlastsNoIntentOnItsTag(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour, LeaseTTL: time.Minute})
	g := f.guards[0]
	mustGet(t, g, "k", tagged("v", "shoes"))
	mustGet(t, g, "k2", tagged("v", "shoes"))
	within := func(what string) {
		t.Helper()
		for _, key := range []string{g.epochs.Key(epoch.OfTag("shoes"), 0), g.cfg.Prefix + ":{0}:epoch:tags"} {
			if left := f.left(key); left <= 0 || left > 2*time.Minute {
				t.Errorf("%s: %s lasts %v", what, key, left)
			}
		}
	}
	in := mustIntend(t, f.guards[1], Changes{Tags: []string{"shoes"}})
	within("an epoch from before")
	expect.Equal(t, "hit", mustGet(t, g, "k", unwanted[string](t)), "v")
	mustGet(t, f.guards[1], "k3", tagged("v", "shoes"))
	within("after another load")
	f.guards[1].keeper.RenewAll()
	within("renewed")
	expect.Equal(t, "hit", mustGet(t, f.guards[1], "k", unwanted[string](t)), "v")
	mustInvalidateTags(t, g, "shoes")
	mustGet(t, g, "k", tagged("v", "shoes"))
	within("made under it")
	mustDone(t, in)
	mustGet(t, g, "k", tagged("w", "shoes"))
	mustGet(t, g, "k", unwanted[string](t))
	for _, key := range []string{g.epochs.Key(epoch.OfTag("shoes"), 0), g.cfg.Prefix + ":{0}:epoch:tags"} {
		if left := f.left(key); left < time.Hour {
			t.Errorf("afterwards, %s lasts %v", key, left)
		}
	}
}

func TestAnIntentThatIsEvictedStandsAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour, LeaseTTL: 20 * time.Second})
	g := f.guards[0]
	in := mustIntend(t, g, Changes{Keys: []string{"k"}, Tags: []string{"shoes"}})
	of := []string{f.intents("k"), g.cfg.Prefix + ":{0}:epoch:until:t:shoes", g.cfg.Prefix + ":{0}:epoch:until:tags"}
	for _, key := range of {
		expect.Equal(t, key, f.exists(key), true)
		expect.Must(t, f.redis.Del(context.Background(), key).Err())
		mustGet(t, g, "k", tagged("v", "shoes"))
		g.keeper.RenewAll()
		redistest.Await(t, key+" is there again", func() bool { return f.exists(key) })
		redistest.Await(t, "the value ends with it", func() bool { return f.left(f.value("k")) <= 40*time.Second })
	}
	mustDone(t, in)
	for _, key := range of {
		expect.Equal(t, key, f.exists(key), false)
	}
	g.keeper.RenewAll()
	expect.Equal(t, "renewed", f.exists(f.intents("k")), false)
}

// A lease that was marked, and whose intent Redis has lost, proves nothing.
func TestALoadWhoseIntentsEndIsNotKnownStoresNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LeaseTTL: time.Minute})
	in := mustIntend(t, f.guards[0], Changes{Keys: []string{"k"}})
	db := newSource("v")
	loading := async(f.guards[0], "k", db.load)
	<-db.begun
	expect.Must(t, f.redis.Del(context.Background(), f.intents("k")).Err())
	close(db.release)
	want(t, loading, "v")
	f.stored()
	expect.Equal(t, "stored", f.exists(f.value("k")), false)
	expect.Equal(t, "rejected", f.events.rejected.Load(), 1)
	mustDone(t, in)
}

func TestLateCopiesOfAnIntentsScriptsOnlyShortenLives(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{TTL: time.Hour, LeaseTTL: time.Minute})
	g, ctx := f.guards[0], context.Background()
	in := mustIntend(t, g, Changes{Keys: []string{"k"}, Tags: []string{"shoes"}})
	text := f.redis.ZRange(ctx, f.intents("k"), 0, 0).Val()[0]
	mustDone(t, in)
	key, name := g.keys.ValueKey("k"), epoch.OfTag("shoes")
	load := func(v string) { expect.Equal(t, "value", mustGet(t, g, "k", tagged(v, "shoes")), v) }
	load("first")
	renewals := map[string]func() (int, error){
		"key": func() (int, error) {
			c := g.keys.RenewIntend(key, text, g.keys.IntentTTL())
			return c.Run(ctx, g.rdb).Int()
		},
		"tag": func() (int, error) {
			c := g.epochs.RenewIntend(name, 0, text, g.keys.IntentTTL())
			return c.Run(ctx, g.rdb).Int()
		},
	}
	for name, renew := range renewals {
		kept, err := renew()
		expect.Equal(t, "a late renewal of the "+name, fmt.Sprint(kept, err), "0 <nil>")
	}
	expect.Equal(t, "still there", mustGet(t, g, "k", unwanted[string](t)), "first")
	if err := errors.Join(
		g.keys.Intend(key, text, g.keys.IntentTTL(), "").Run(ctx, g.rdb).Err(),
		g.epochs.Intend(name, 0, text, g.keys.IntentTTL(), "").Run(ctx, g.rdb).Err(),
	); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "still there", mustGet(t, g, "k", unwanted[string](t)), "first")
	if left := f.left(key); left > 2*time.Minute {
		t.Errorf("it lasts %v", left)
	}
	mustInvalidate(t, g, "k")
	load("second")
	if err := errors.Join(
		g.keys.Done(key, text, "").Run(ctx, g.rdb).Err(),
		g.epochs.Done(name, 0, text, "").Run(ctx, g.rdb).Err(),
	); err != nil {
		t.Fatal(err)
	}
	load("third")
	if left := f.left(key); left < 3*time.Minute {
		t.Errorf("without an intent, it lasts %v", left)
	}
}

// A fill that arrives after its intent has expired, before Redis has removed the lease.
func TestAFillFindsAnIntentThatHasExpired(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fill", "acquire", "renew", "make"} {
		expect.Beside(t, name, func(t *testing.T) {
			f := newFleet(t, standalone(t), 2, Config{TTL: time.Hour, LeaseTTL: time.Minute, RedisTimeout: bearing})
			g, ctx := f.guards[0], context.Background()
			mustGet(t, g, "tagged", tagged("old", "shoes"))
			in := mustIntend(t, g, Changes{Keys: []string{"k"}, Tags: []string{"shoes"}})
			db := newSource("old")
			loading := async(g, "k", db.loadTagged("shoes"))
			<-db.begun
			for _, key := range []string{f.intents("k"), g.cfg.Prefix + ":{0}:epoch:until:t:shoes", g.cfg.Prefix + ":{0}:epoch:until:tags"} {
				for _, member := range f.redis.ZRange(ctx, key, 0, -1).Val() {
					f.redis.ZAdd(ctx, key, redis.Z{Member: member, Score: 1}) // it was over long ago
				}
			}
			in.kept.Stop()
			switch name {
			case "acquire":
				expect.Equal(t, "value", mustGet(t, f.guards[1], "k", tagged("new", "shoes")), "new")
			case "renew":
				g.keeper.RenewAll()
				redistest.Await(t, "the lease is lost", func() bool { return g.journal.Times(watch.What(EventOvertaken)) == 1 })
			case "make":
				expect.Equal(t, "value", mustGet(t, g, "other", tagged("new", "shoes")), "new")
				expect.Equal(t, "of the tag", mustGet(t, g, "tagged", tagged("new", "shoes")), "new")
			}
			close(db.release)
			want(t, loading, "old")
			f.stored()
			expect.Equal(t, "afterwards", mustGet(t, g, "k", tagged("new", "shoes")), "new")
		})
	}
}

func TestTheLocalTierKeepsNothingThatEndsWithAnIntent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{
		TTL: time.Hour, LeaseTTL: time.Minute, Local: LocalConfig{MaxEntries: 100, TTL: time.Hour},
	}).listening()
	reader := f.guards[1]
	gets := func(key, value string, how Outcome) {
		t.Helper()
		v, outcome, err := get(context.Background(), reader, key, unwanted[string](t))
		expect.Equal(t, key, fmt.Sprint(v, outcome, err), fmt.Sprint(value, how, nil))
	}
	mustGet(t, f.guards[0], "k", returns("old"))
	mustGet(t, f.guards[0], "list", tagged("old", "shoes"))
	for _, key := range []string{"k", "list"} {
		gets(key, "old", Hit)
		gets(key, "old", Local)
	}
	in := mustIntend(t, f.guards[0], Changes{Keys: []string{"k", "later"}, Tags: []string{"shoes"}})
	for _, key := range []string{"k", "list"} {
		redistest.Await(t, "the tier has heard of it", func() bool { return !reader.local.Has(key) })
		gets(key, "old", Hit)
		gets(key, "old", Hit)
	}
	mustGet(t, f.guards[0], "later", returns("old"))
	mustGet(t, f.guards[0], "later list", tagged("old", "shoes"))
	for _, key := range []string{"later", "later list"} {
		gets(key, "old", Hit)
		gets(key, "old", Hit)
	}
	mustDone(t, in)
	mustGet(t, f.guards[0], "k", returns("new"))
	mustGet(t, f.guards[0], "list", tagged("new", "shoes"))
	for _, key := range []string{"k", "list"} {
		redistest.Await(t, "the tier has heard of the end, and keeps the value", func() bool {
			v, how, err := get(context.Background(), reader, key, unwanted[string](t))
			return err == nil && v == "new" && how == Local
		})
	}
}

// TRANSACTIONS is how many.
func TestTransactionsInOppositeOrdersWaitForNobody(t *testing.T) {
	t.Parallel()
	count, err := strconv.Atoi(os.Getenv("TRANSACTIONS"))
	if err != nil {
		count = 320
	}
	f := newFleet(t, standalone(t), 2, Config{RedisTimeout: bearing})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range count / 16 {
				order := []string{"a", "b"}
				if i%2 == 0 {
					order = []string{"b", "a"}
				}
				in := mustIntend(t, f.guards[i%2], Changes{Keys: order[:1], Tags: order[1:]})
				expect.Equal(t, "Also", in.Also(context.Background(), Changes{Keys: order[1:], Tags: order[:1]}), nil)
				mustGet(t, f.guards[i%2], order[rand.IntN(2)], returns("v"))
				mustDone(t, in)
			}
		})
	}
	all.Wait()
	for _, key := range []string{"a", "b"} {
		expect.Equal(t, key, f.exists(f.intents(key)), false)
	}
	n, _ := f.guards[0].writes.Intents()
	expect.Equal(t, "intents", n, 0)
}

func TestAnIntentTakesARoundTripHoweverManyKeys(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: bearing}, rdb)
	g, keys, ctx := f.guards[0], numbered(0, 1000), context.Background()
	mustDone(t, mustIntend(t, g, Changes{Keys: keys[:1], Tags: keys[:1]})) // the server knows the scripts
	mustInvalidate(t, g, "k")
	mustInvalidateTags(t, g, "k")
	counted := new(pipelines)
	rdb.AddHook(counted)
	step := func(what string, do func() error) {
		t.Helper()
		before := counted.n.Load()
		expect.Equal(t, what, do(), nil)
		expect.Equal(t, what+": requests", counted.n.Load()-before, 1)
	}
	in := mustIntend(t, g, Changes{})
	step("keys", func() error { return in.Also(ctx, Changes{Keys: keys}) })
	step("tags", func() error { return in.Also(ctx, Changes{Tags: keys}) })
	before := counted.n.Load()
	mustDone(t, in)
	expect.Equal(t, "Done of both, at the same time: requests", counted.n.Load()-before, 2)
	step("Invalidate", func() error { return g.Invalidate(ctx, keys...) })
	step("InvalidateTags", func() error { return g.InvalidateTags(ctx, keys...) })
}

// pipelines is a hook that counts those with scripts.
type pipelines struct {
	gauges
	n atomic.Int64
}

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.n.Add(1)
		return next(ctx, cmds)
	}
}

func TestAnIntentThatNobodyEndsIsDoneByItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{LeaseTTL: brisk, UpdateTimeout: brisk})
	g, ctx := f.guards[0], context.Background()
	var in *Intent
	redistest.Await(t, "it stands", func() (stands bool) { // a machine that is busy may take longer to say so
		var err error
		in, err = g.Intend(ctx, Changes{Keys: []string{"k"}})
		return err == nil
	})
	redistest.Await(t, "it is over", func() bool { n, _ := g.writes.Intents(); return n == 0 && !f.exists(f.intents("k")) })
	expect.ErrorIs(t, in.Also(ctx, Changes{Keys: []string{"j"}}), rwlock.ErrLeaseLost)
	mustGet(t, g, "k", returns("old")) // before the late commit
	err := in.Done(ctx)
	expect.ErrorIs(t, err, rwlock.ErrLeaseLost)
	expect.Equal(t, "written", Written(err), true)
	expect.Equal(t, "afterwards", mustGet(t, g, "k", returns("new")), "new")
	expect.ErrorIs(t, in.Done(ctx), rwlock.ErrLeaseLost)
	expect.ErrorIs(t, in.Also(ctx, Changes{Keys: []string{"j"}}), write.ErrDone)
}

func TestAnIntentRefusesWhatNobodyCanName(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	g, ctx := f.guards[0], context.Background()
	for name, c := range map[string]Changes{
		"an empty key": {Keys: []string{"k", ""}}, "an empty tag": {Tags: []string{""}},
		"a long tag": {Keys: []string{"k"}, Tags: []string{fmt.Sprintf("%513d", 1)}},
	} {
		in, err := g.Intend(ctx, c)
		if in != nil || err == nil || Written(err) {
			t.Errorf("%s: %v, %v", name, in, err)
		}
		in = mustIntend(t, g, Changes{})
		if in.Also(ctx, c) == nil {
			t.Errorf("Also of %s has no error", name)
		}
		mustDone(t, in)
	}
	expect.Equal(t, "stands", f.exists(f.intents("k")), false)

	in := mustIntend(t, g, Changes{Keys: []string{"k", "k"}, Tags: []string{"t", "t"}})
	expect.Equal(t, "the same again", in.Also(ctx, Changes{Keys: []string{"k"}}), nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { expect.Equal(t, "Done", in.Done(ctx), nil) })
	}
	all.Wait()
	expect.ErrorIs(t, in.Also(ctx, Changes{}), write.ErrDone)

	var none *Intent
	var noGuard *Guard
	expect.ErrorIs(t, none.Done(ctx), errNilIntent)
	expect.ErrorIs(t, none.Also(ctx, Changes{}), errNilIntent)
	expect.Equal(t, "Context", none.Context(ctx), ctx)
	_, err := noGuard.Intend(ctx, Changes{})
	expect.ErrorIs(t, err, errNilGuard)
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = g.Intend(over, Changes{Keys: []string{"k"}})
	expect.ErrorIs(t, err, context.Canceled)
	expect.Equal(t, "written", Written(err), false)
	in = mustIntend(t, g, Changes{Keys: []string{"k"}})
	mustGet(t, g, "k", returns("old"))
	_ = in.Done(over) // it does not wait, or is quick
	mustDone(t, in)
	expect.Equal(t, "afterwards", mustGet(t, g, "k", returns("new")), "new")

	many := mustIntend(t, g, Changes{Keys: numbered(0, 10_000)})
	mustGet(t, g, numbered(9_999, 10_000)[0], returns("old"))
	mustDone(t, many)
	expect.Equal(t, "one of many", mustGet(t, g, numbered(9_999, 10_000)[0], returns("new")), "new")

	last := mustIntend(t, g, Changes{Keys: []string{"k"}})
	_ = g.Close() // always nil
	_, err = g.Intend(ctx, Changes{Keys: []string{"k"}})
	expect.ErrorIs(t, err, ErrClosed)
	expect.ErrorIs(t, last.Also(ctx, Changes{Keys: []string{"k"}}), ErrClosed)
	expect.ErrorIs(t, last.Done(ctx), ErrClosed)
	expect.Equal(t, "it expires", f.exists(f.intents("k")), true)
}
