package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func promiseInvalidateDuringLoad(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	for range 50 {
		db := newSource("old")
		loading := async(f.guards[0], "k", db.load)
		<-db.begun
		db.value.Store("new")
		mustInvalidate(t, f.guards[1], "k")
		close(db.release)
		want(t, loading, "old") // it began before the write
		for _, g := range f.guards {
			expect.Equal(t, "value after Invalidate", mustGet(t, g, "k", db.load), "new")
		}
		mustInvalidate(t, f.guards[0], "k")
	}
	expect.Equal(t, "rejected", f.events.rejected.Load(), 50)
}

// A call that began after Invalidate may find a load under way that has read the old value: on its own instance and on
// another one.
func promiseJoinersAskAgain(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{}).listening()
	old, fresh := newSource("old"), newSource("new")
	first := async(f.guards[0], "k", old.load)
	<-old.begun
	waiting := async(f.guards[1], "k", fresh.load)
	f.awaitRegistered("k", 1)
	mustInvalidate(t, f.guards[1], "k")
	joining := async(f.guards[0], "k", fresh.load)
	awaitCallers[string](f, 0, "k", 2)
	close(old.release)
	close(fresh.release)
	want(t, first, "old")
	want(t, waiting, "new")
	want(t, joining, "new")
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "new")
}

func promiseAbsence(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	absent := func(context.Context) (string, error) { return "", fmt.Errorf("no row: %w", ErrNotFound) }
	expect.ErrorIs(t, expect.Err(getOn(context.Background(), f.guards[0], "k", absent)), ErrNotFound)
	expect.ErrorIs(t, expect.Err(getOn(context.Background(), f.guards[1], "k", unwanted[string](t))), ErrNotFound)
	expect.Equal(t, "negative", f.events.count(Negative), 1)
	mustInvalidate(t, f.guards[0], "k")
	expect.Equal(t, "after Invalidate", mustGet(t, f.guards[1], "k", returns("v")), "v")
}

func promiseInvalidateMany(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	var keys []string
	for i := range 600 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	for _, k := range keys[:20] {
		mustGet(t, f.guards[0], k, returns("old"))
	}
	expect.ErrorIs(t, f.guards[1].Invalidate(context.Background(), keysOn(f.guards[1], append(keys, ""))...), errEmptyKey)
	for _, k := range keys[:20] {
		expect.Equal(t, k, mustGet(t, f.guards[0], k, returns("new")), "new")
	}
}

func promiseTTL(t *testing.T, a arena) {
	ctx := context.Background()
	f := newFleet(t, a, 1, Config{TTL: 15 * time.Minute, Jitter: -1, NegativeTTL: 7 * time.Minute, LoadTimeout: 30 * time.Second})
	g := f.guards[0]
	within := func(what, key string, least, most time.Duration) {
		t.Helper()
		ttl, err := f.redis.PTTL(ctx, key).Result()
		if err != nil || ttl <= least || ttl > most {
			t.Errorf("TTL of %s: %v, %v; want %v to %v", what, ttl, err, least, most)
		}
	}
	db := newSource("v")
	loading := async(g, "lease", db.load)
	<-db.begun
	within("a lease", f.lease("lease"), time.Second, 2*time.Minute)
	close(db.release)
	want(t, loading, "v")
	f.stored()
	within("a value", f.value("lease"), 0, 15*time.Minute)

	_, _ = getOn(ctx, g, "absent", func(context.Context) (string, error) { return "", ErrNotFound })
	f.stored()
	within("absence", f.value("absent"), 0, 7*time.Minute)
	_, _ = getOn(ctx, g, "failed", func(context.Context) (string, error) { return "", errors.New("no") })
	f.stored()
	within("a failure", f.lease("failed"), 0, 2*time.Minute)
	mustGet(t, g, "own", func(ctx context.Context) (string, error) {
		SetTTL(ctx, time.Hour)
		return "v", nil
	})
	within("a TTL of its own", f.value("own"), time.Minute, time.Hour)
	mustGet(t, g, "short", func(ctx context.Context) (string, error) {
		SetTTL(ctx, 30*time.Millisecond)
		return "v", nil
	})
	redistest.Await(t, "a TTL of 30 ms ends", func() bool { return !f.exists(f.value("short")) })
	mustGet(t, g, "unstored", func(ctx context.Context) (string, error) {
		SetTTL(ctx, 0)
		return "v", nil
	})
	expect.Equal(t, "a value that was not to be stored is there", f.exists(f.value("unstored")), false)
}

func promiseAnyKey(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	long := make([]byte, 10_000)
	for i := range long {
		long[i] = byte(i)
	}
	keys := []string{
		"{", "}", "{}", "}{", "{a}", "a}b{c", "\\", "\\}", "a b", "ключ\n", "\x00\xff", "a:lease", "k}:lease",
		"%s%d", string(long),
	}
	for i, k := range keys {
		expect.Equal(t, k, mustGet(t, f.guards[0], k, returns(i)), i)
	}
	for i, k := range keys {
		expect.Equal(t, k, mustGet(t, f.guards[1], k, unwanted[int](t)), i)
	}
	expect.ErrorIs(t, expect.Err(getOn(context.Background(), f.guards[0], "", returns(1))), errEmptyKey)
}

func promiseStale(t *testing.T, a arena) {
	f := newFleet(t, a, 3, Config{TTL: 50 * time.Millisecond, StaleFor: time.Minute, Jitter: -1})
	for _, g := range f.guards {
		g.serverClocks.Age("k", time.Now())
		redistest.Await(t, "the server's clock is known", func() bool { return g.knowsClock("k") })
	}
	mustGet(t, f.guards[0], "k", returns("old"))
	hold(t, 60*time.Millisecond)
	db := newSource("new")
	for range 5 {
		for _, g := range f.guards {
			expect.Equal(t, "stale value", mustGet(t, g, "k", db.load), "old")
		}
	}
	<-db.begun
	expect.Equal(t, "stale", f.events.count(Stale), 15)
	expect.Equal(t, "background loads", db.loads.Load(), 1)
	close(db.release)
	redistest.Await(t, "the new value is stored", func() bool {
		return mustGet(t, f.guards[2], "k", db.load) == "new"
	})
	db.value.Store("newest")
	mustInvalidate(t, f.guards[0], "k")
	expect.Equal(t, "after Invalidate", mustGet(t, f.guards[1], "k", db.load), "newest")
}

func promiseClose(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{LeaseTTL: time.Minute}).listening()
	db := newSource("v")
	loading := async(f.guards[0], "k", db.load)
	<-db.begun
	waiting := async(f.guards[1], "k", db.load)
	f.awaitRegistered("k", 1)
	for range 2 {
		expect.Equal(t, "Close", f.guards[1].Close(), nil)
	}
	expect.ErrorIs(t, (<-waiting).err, ErrClosed)
	expect.Equal(t, "Close", f.guards[0].Close(), nil)
	expect.ErrorIs(t, (<-loading).err, ErrClosed)
	expect.Equal(t, "the lease is there", f.exists(f.lease("k")), false)
	expect.ErrorIs(t, expect.Err(getOn(context.Background(), f.guards[0], "k", db.load)), ErrClosed)
	expect.ErrorIs(t, f.guards[0].Invalidate(context.Background(), "k"), ErrClosed)
}

func promiseScriptFlush(t *testing.T, a arena) {
	ctx := context.Background()
	f := newFleet(t, a, 1, Config{})
	for i := range 20 {
		key := fmt.Sprint("k", i)
		expect.Must(t, f.redis.ScriptFlush(ctx).Err())
		expect.Equal(t, key, mustGet(t, f.guards[0], key, returns(i)), i)
		mustInvalidate(t, f.guards[0], key, key+"x")
		expect.Equal(t, "value is there", f.exists(f.value(key)), false)
	}
}
