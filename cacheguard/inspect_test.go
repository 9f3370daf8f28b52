package cacheguard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func mustInspect(t *testing.T, g *Guard, key string) Inspection {
	t.Helper()
	i, err := g.Inspect(t.Context(), key)
	expect.Must(t, err)
	return i
}

// onInstances gives each guard of a fleet a name of its own.
func onInstances(t *testing.T, cfg Config, names ...string) *fleet {
	t.Helper()
	f := newFleet(t, standalone(t), 0, cfg)
	cfg.Prefix, cfg.Observers = "test-"+rand.Text(), f.events.observers(t)
	for _, cfg.Instance = range names {
		f.guards = append(f.guards, newGuard(t, shared.Client(t), cfg))
	}
	return f
}

func TestInspectSaysWhoLoadsAndHowManyWait(t *testing.T) {
	t.Parallel()
	f := onInstances(t, Config{LeaseTTL: time.Minute}, "shop-1", "shop-2").listening()
	db := newSource("v")
	first := async(f.guards[0], "k", db.load)
	<-db.begun
	second := async(f.guards[1], "k", db.load)
	f.awaitRegistered("k", 1)
	i := mustInspect(t, f.guards[1], "k")
	if i.Load == nil {
		t.Fatalf("nobody loads:\n%v", i)
	}
	expect.Equal(t, "state", i.State, EntryMissing)
	expect.Equal(t, "the loading instance", i.Load.Instance, "shop-1")
	expect.Equal(t, "waiting", i.Waiting, 1)
	expect.Equal(t, "here", i.Here, Here{Loads: 1, Callers: 1})
	if i.Load.For < 0 || i.Load.For > time.Hour || i.Load.Left <= 0 || i.Load.Left > time.Minute {
		t.Errorf("since %v, for another %v", i.Load.For, i.Load.Left)
	}
	close(db.release)
	want(t, first, "v")
	want(t, second, "v")
	i = mustInspect(t, f.stored().guards[1], "k")
	expect.Equal(t, "state", i.State, EntryFresh)
	expect.Equal(t, "kind", i.Kind, "bytes")
	if i.Load != nil || i.FreshFor <= 0 || i.KeptFor < i.FreshFor || i.Size <= len("v") || i.Waiting != 0 {
		t.Errorf("%+v", i)
	}
}

func TestALeaseThatIsTakenOverIsOfTheInstanceThatTookIt(t *testing.T) {
	t.Parallel()
	f := onInstances(t, Config{}, "dead", "alive")
	db := newSource("v")
	f.redis.HSet(t.Context(), f.lease("k"), "token", "x", "deadline", 1, "length", 1, "generation", "g", "holder", "1 dead")
	value := async(f.guards[1], "k", db.load)
	<-db.begun
	expect.Equal(t, "the loading instance", mustInspect(t, f.guards[0], "k").Load.Instance, "alive")
	close(db.release)
	want(t, value, "v")
}

func TestInspectTellsTheStatesOfAnEntryApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{StaleFor: time.Hour, Jitter: off})
	g := f.guards[0]
	_, _ = Get(t.Context(), g, "absent", func(context.Context) (string, error) { return "", ErrNotFound })
	_, err := Get(t.Context(), g, "failed", func(context.Context) (string, error) { return "", errors.New("oops") })
	expect.Equal(t, "failed", err != nil, true)
	mustGet(t, g, "stale", func(ctx context.Context) (int, error) { SetTTL(ctx, time.Millisecond); return 7, nil })
	f.stored().redis.Set(t.Context(), f.value("damaged"), "something else", time.Minute)
	f.redis.HSet(t.Context(), f.value("type"), "a", "b")

	expect.Equal(t, "absent", mustInspect(t, g, "absent").State, EntryAbsent)
	expect.Equal(t, "missing", mustInspect(t, g, "missing").String(), "\"missing\": missing\n")
	damaged := mustInspect(t, g, "damaged")
	expect.Equal(t, "damaged", damaged.State, EntryDamaged)
	expect.Equal(t, "size", damaged.Size, len("something else"))
	expect.Equal(t, "another type", mustInspect(t, g, "type").State, EntryDamaged)
	redistest.Await(t, "the value is past its TTL", func() bool { return mustInspect(t, g, "stale").State == EntryStale })
	stale := mustInspect(t, g, "stale")
	expect.Equal(t, "coded", stale.Kind, "coded")
	if stale.FreshFor != 0 || stale.KeptFor <= 0 || stale.Age <= 0 {
		t.Errorf("%+v", stale)
	}
	var failed Inspection
	redistest.Await(t, "the text of a failure that still counts", func() bool {
		_, _ = Get(t.Context(), g, "failed", func(context.Context) (string, error) { return "", errors.New("oops") })
		failed = mustInspect(t, g, "failed")
		return failed.Failure != nil && failed.Failure.Message == "oops"
	})
	if failed.Failure.InARow < 1 || failed.Load != nil {
		t.Errorf("%+v", failed)
	}
}

func TestInspectSaysWhoIsWithinAnUpdate(t *testing.T) {
	t.Parallel()
	f := onInstances(t, Config{}, "writer", "reader").listening()
	err := f.guards[0].Update(t.Context(), "k", func(context.Context) error {
		waiting := async(f.guards[1], "k", returns("v"))
		redistest.Await(t, "a Get waits for the update", func() bool { return mustInspect(t, f.guards[1], "k").Blocked == 1 })
		i := mustInspect(t, f.guards[1], "k")
		expect.Equal(t, "writers", len(i.Writers), 1)
		expect.Equal(t, "writer", i.Writers[0].Instance, "writer")
		lock, err := locksOf(t, f.guards[1]).Inspect(t.Context(), "k")
		if err != nil || !strings.HasSuffix(lock.Token, "@writer") {
			t.Errorf("the lock belongs to %q, %v", lock.Token, err)
		}
		t.Cleanup(func() { want(t, waiting, "v") })
		return nil
	})
	expect.Must(t, err)
	expect.Equal(t, "writers after it", len(mustInspect(t, f.guards[1], "k").Writers), 0)
}

func TestInspectLooksIntoTheLocalTierAndCountsForNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Local: LocalConfig{MaxEntries: 10, TTL: time.Hour}}).listening()
	g := f.guards[0]
	redistest.Await(t, "the tier has it", func() bool {
		mustGet(t, g, "k", returns("v"))
		return mustInspect(t, g, "k").Here.InTier
	})
	mustInvalidate(t, g, "k")
	expect.Equal(t, "in the tier", mustInspect(t, g, "k").Here.InTier, false)
}

func TestWhenRedisFailsInspectHasWhatIsKnownHere(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	f.events.quiet = true
	g := f.guards[0]
	proxy.On(scriptOf("invalidate"), redistest.ReplyError("LOADING Redis is loading"))
	proxy.On(scriptOf("inspect"), redistest.ReplyError("LOADING Redis is loading"))
	_ = g.Invalidate(t.Context(), "k")
	i, err := g.Inspect(t.Context(), "k")
	expectRedisError(t, err, "inspect", "")
	expect.Equal(t, "pending", i.Here.Pending, true)
}

func TestAnInspectionCanBeRead(t *testing.T) {
	t.Parallel()
	text := Inspection{
		Key: "k", State: EntryStale, Age: time.Second, KeptFor: time.Minute, LoadTook: 2 * time.Second, Kind: "coded", Size: 99,
		Tags: []string{"a"}, TagVersions: []string{"v1"}, Load: &Holder{Instance: "shop-1", For: time.Second, Left: 3 * time.Second}, Waiting: 2,
		Writers: []Holder{{}}, Blocked: 1, Failure: &Failure{Message: "oops", InARow: 3, Left: time.Second},
		Here: Here{InTier: true, Loads: 1, Callers: 7, Pending: true, Bypassed: true, Cut: true},
	}.String()
	expect.Equal(t, "text", text, `"k": stale
  stored 1s ago, fresh for 0s, in Redis for 1m0s
  99 bytes, coded, loaded in 2s
  tag "a", version v1
  loaded by shop-1 for 1s, believed to be alive for another 3s; 2 other instances wait
  updated by an instance that is not known for 0s, believed to be alive for another 0s; 1 instance waits
  3 loads in a row failed, the error is remembered for 1s: "oops"
  here: in the local tier
  here: 1 load or wait under way, 7 callers
  here: an invalidation is still to be sent
  here: the cache is bypassed
  here: Redis does not answer
`)
}

func TestWhatAnInspectionQuotesLooksLikeNoLineOfItsOwn(t *testing.T) {
	t.Parallel()
	const forged = "x\n  loaded by shop-9 for 1h\x1b[2K\u202e"
	i := Inspection{
		Key: forged, State: EntryFresh, Tags: []string{forged}, TagVersions: []string{forged}, Load: &Holder{Instance: forged},
		Writers: []Holder{{Instance: forged}}, Failure: &Failure{Message: forged, InARow: 1},
	}
	text := i.String()
	if n := strings.Count(text, "\n"); n != 7 || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%d lines, want 7:\n%s", n, text)
	}
}

func TestInspectKnowsTheTagsOfAnEntryAndWhetherTheyWereInvalidated(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{})
	tagged := func(ctx context.Context) (string, error) { SetTags(ctx, "shoes"); return "v", nil }
	redistest.Await(t, "it is stored", func() bool {
		mustGet(t, f.guards[0], "k", tagged)
		return mustInspect(t, f.guards[1], "k").State == EntryFresh
	})
	expect.Equal(t, "tags", strings.Join(mustInspect(t, f.guards[1], "k").Tags, ","), "shoes")
	current := f.redis.Get(t.Context(), f.guards[0].epochs.Key(epoch.OfTag("shoes"), 0)).Val()
	expect.Equal(t, "epochs", strings.Join(mustInspect(t, f.guards[1], "k").TagVersions, ","), hex.EncodeToString([]byte(current)))
	expect.Must(t, f.guards[1].InvalidateTags(t.Context(), "shoes"))
	expect.Equal(t, "state", mustInspect(t, f.guards[0], "k").State, EntryRevoked)
}

func promiseInspect(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{LeaseTTL: time.Minute, Instance: "shop"}).listening()
	asked := f.guards[1]
	for i := range 5 { // on a cluster, on several nodes
		key := fmt.Sprint("k", i)
		inspect := func() Inspection { return mustInspect(t, asked, keyOn(asked, key)) }
		db := newSource("v")
		first := async(f.guards[0], key, db.load)
		<-db.begun
		second := async(asked, key, db.load)
		f.awaitRegistered(key, 1)
		awaitCallers[string](f, 1, key, 1)
		in := inspect()
		if in.Load == nil {
			t.Fatalf("nobody loads:\n%v", in)
		}
		expect.Equal(t, "state", in.State, EntryMissing)
		expect.Equal(t, "the loading instance", in.Load.Instance, "shop")
		if !f.deaf { // a poller is not registered
			expect.Equal(t, "waiting", in.Waiting, 1)
		}
		expect.Equal(t, "here", in.Here, Here{Loads: 1, Callers: 1})
		close(db.release)
		want(t, first, "v")
		want(t, second, "v")
		f.stored()
		in = inspect()
		expect.Equal(t, "state", in.State, EntryFresh)
		expect.Equal(t, "nobody loads", in.Load == nil && in.Waiting == 0, true)
		mustInvalidate(t, f.guards[0], key)
		expect.Equal(t, "state", inspect().State, EntryMissing)
		err := f.guards[0].Update(t.Context(), keyOn(f.guards[0], key), func(context.Context) error {
			writers := inspect().Writers
			expect.Equal(t, "writers", len(writers), 1)
			expect.Equal(t, "the writing instance", writers[0].Instance, "shop")
			return nil
		})
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "writers after it", len(inspect().Writers), 0)
	}
}

func TestALookUpDoesNotFetchTheValue(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	f := newFleetOn(t, rdb, Config{}, rdb)
	g, size := f.guards[0], 4<<20
	mustGet(t, g, "k", func(ctx context.Context) (string, error) {
		SetTags(ctx, "a", "b")
		return strings.Repeat("x", size), nil
	})
	f.stored()
	before := sent(t, rdb)
	i := mustInspect(t, g, "k")
	if took := sent(t, rdb) - before; took > 1<<17 {
		t.Errorf("%d bytes came from Redis", took)
	}
	expect.Equal(t, "state", i.State, EntryFresh)
	expect.Equal(t, "tags", len(i.Tags), 2)
	if i.Size < size {
		t.Errorf("it says %d bytes", i.Size)
	}
	f.redis.Set(t.Context(), f.value("odd"), strings.Repeat("x", size), time.Minute)
	expect.Equal(t, "another program's", mustInspect(t, g, "odd").State, EntryDamaged)

	poor := newGuard(t, server.Client(t, server.As(t, append(acl.Guard.ACL(g.cfg.Prefix), "-strlen")...)), Config{Prefix: g.cfg.Prefix})
	expect.Equal(t, "state, without the right to STRLEN", mustInspect(t, poor, "k").State, EntryFresh)
}

// sent is how many bytes the server has sent so far.
func sent(t *testing.T, rdb client) (bytes int) {
	t.Helper()
	for line := range strings.Lines(rdb.Info(t.Context(), "stats").Val()) {
		_, _ = fmt.Sscanf(line, "total_net_output_bytes:%d", &bytes) // other lines are others
	}
	return bytes
}

func TestATagThatNoEntryHasIsKnownAsSuch(t *testing.T) {
	t.Parallel()
	f, _ := broken(t, shared, Config{})
	g := f.guards[0]
	has := func(tag string) bool {
		t.Helper()
		is, err := f.guards[1].HasTag(t.Context(), tag)
		expect.ErrorIs(t, err)
		return is
	}
	expect.Equal(t, "before", has("shoes"), false)
	mustGet(t, g, "k", func(ctx context.Context) (string, error) {
		SetTags(ctx, "shoes")
		return "v", nil
	})
	expect.Equal(t, "of an entry", has("shoes"), true)
	expect.Equal(t, "another", has("shoe"), false)
	_ = g.Close() // always nil
	_, err := g.HasTag(t.Context(), "shoes")
	expect.ErrorIs(t, err, ErrClosed)
}
