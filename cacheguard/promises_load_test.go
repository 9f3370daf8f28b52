package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func promiseOneLoad(t *testing.T, a arena) {
	const instances, callers = 4, 16
	f := newFleet(t, a, instances, Config{}).listening()
	db := newSource("v")
	var replies []<-chan reply[string]
	for i, g := range f.guards {
		for range callers {
			replies = append(replies, async(g, "k", db.load))
		}
		awaitCallers[string](f, i, "k", callers)
	}
	<-db.begun
	f.awaitRegistered("k", instances-1)
	close(db.release)
	for _, r := range replies {
		want(t, r, "v")
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
	expect.Equal(t, "loaded", f.events.count(Loaded), 1)
	// Callers that came after their flight had registered read the value once more: the push does not cover them.
	expect.Equal(t, "shared", f.events.count(Shared)+f.events.count(Hit), instances*callers-1)
	expect.Equal(t, "the lease is there", f.exists(f.lease("k")), false)
}

func promiseHit(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{})
	mustGet(t, f.guards[0], "k", returns("v"))
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "v")
	expect.Equal(t, "hits", f.events.count(Hit), 1)
}

func promiseFailure(t *testing.T, a arena) {
	f := newFleet(t, a, 3, Config{}).listening()
	broken := errors.New("database is down")
	db := newSource("")
	fail := func(ctx context.Context) (string, error) {
		_, err := db.load(ctx)
		return "", errors.Join(err, broken)
	}
	leader := async(f.guards[0], "k", fail)
	<-db.begun
	joined := async(f.guards[0], "k", fail)
	awaitCallers[string](f, 0, "k", 2)
	remote := []<-chan reply[string]{async(f.guards[1], "k", fail), async(f.guards[2], "k", fail)}
	f.awaitRegistered("k", 2)
	close(db.release)
	for _, r := range []<-chan reply[string]{leader, joined} {
		expect.ErrorIs(t, (<-r).err, broken)
	}
	for _, r := range remote {
		var failed *LoadError
		if err := (<-r).err; !errors.As(err, &failed) || failed.Message != broken.Error() || failed.Key != keyOn(f.guards[0], "k") {
			t.Errorf("on another instance: %v", err)
		}
	}
	expect.Equal(t, "loads", db.loads.Load(), 1)
}

func promiseCancelledLoad(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{LeaseTTL: time.Minute}).listening()
	db := newSource("v")
	ctx, cancel := context.WithCancel(context.Background())
	first := asyncCtx(ctx, f.guards[0], "k", db.load)
	<-db.begun
	waiting := async(f.guards[1], "k", db.load)
	f.awaitRegistered("k", 1)
	cancel()
	expect.ErrorIs(t, (<-first).err, context.Canceled)
	<-db.begun // the other instance's turn, though the lease would have lasted a minute
	close(db.release)
	want(t, waiting, "v")
}

func promiseRenewal(t *testing.T, a arena) {
	f := newFleet(t, a, 2, Config{LeaseTTL: 2 * brisk}).listening()
	db := newSource("v")
	slow := func(ctx context.Context) (string, error) {
		v, err := db.load(ctx)
		return v, err
	}
	first := async(f.guards[0], "k", slow)
	<-db.begun
	second := async(f.guards[1], "k", slow)
	f.awaitRegistered("k", 1)
	hold(t, 5*brisk) // more than two leases
	close(db.release)
	want(t, first, "v")
	want(t, second, "v")
	expect.Equal(t, "loads", db.loads.Load(), 1)
	expect.Equal(t, "leases lost", f.events.lost.Load(), 0)
}

func promiseLostLease(t *testing.T, a arena) {
	ctx := context.Background()
	f := newFleet(t, a, 2, Config{LeaseTTL: time.Minute})
	lose := func(key string) { // as if the holder had been paused beyond its deadline
		expect.Must(t, f.redis.HSet(ctx, f.lease(key), "deadline", 1).Err())
	}
	old, newer := newSource("old"), newSource("newer")

	first := async(f.guards[0], "k", old.load)
	<-old.begun
	lose("k")
	second := async(f.guards[1], "k", newer.load)
	<-newer.begun
	close(old.release)
	want(t, first, "old")
	f.stored()
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "old") // nothing had been written since
	close(newer.release)
	want(t, second, "newer")
	f.stored()
	expect.Equal(t, "rejected", f.events.rejected.Load(), 1) // the second: a value was stored since
	expect.Equal(t, "value", mustGet(t, f.guards[1], "k", unwanted[string](t)), "old")
	expect.Equal(t, "takeovers", f.events.takeovers.Load(), 1)
}

// hold lets the clock run, where the passing of time itself is what is tested: no outcome depends on how much more
// than this passes.
func hold(t *testing.T, d time.Duration) {
	t.Helper()
	<-time.After(d)
}
