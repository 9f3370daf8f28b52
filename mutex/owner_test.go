package mutex

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAnOwnerMayLockAgainWhatItHolds(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, cfg Config) {
		f := newFleet(t, 2, cfg)
		ctx := WithOwner(patient(t))
		outer := must(t)(f.lockers[0].Lock(ctx, "k"))
		waiting := f.ask(t.Context(), 0, "k") // must not be in the way of the owner
		f.awaitWaiters("k", 1)
		inner := must(t)(f.lockers[0].Lock(ctx, "k"))
		third := must(t)(f.lockers[1].TryLock(ctx, "k"))
		expect.Equal(t, "fence", inner.Fence(), outer.Fence())
		expect.Equal(t, "token", third.Token(), outer.Token())
		info := must2(f.lockers[0].Inspect(t.Context(), "k"))
		expect.Equal(t, "holds", info.Holds, 3)
		_, err := f.lockers[0].TryLock(WithOwner(ctx), "k")
		expect.ErrorIs(t, err, ErrNotAcquired)
		f.unlock(outer) // in any order
		f.unlock(outer)
		f.unlock(third)
		waiting.MustWait()
		f.unlock(inner)
		f.unlock(waiting.Got())
	})
}

func TestReentryDoesNotProlongTheLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{TTL: time.Minute, FixedLease: true})
	ctx := WithOwner(t.Context())
	outer := must(t)(f.lockers[0].Lock(ctx, "k"))
	ends := time.Now().Add(time.Minute) // at the latest, as the outer lease was granted before
	redistest.Await(t, "some time", func() bool { return time.Until(ends) < time.Minute-50*time.Millisecond })
	inner := must(t)(f.lockers[0].Lock(ctx, "k"))
	if d := inner.TrustedUntil().Sub(ends); d > 20*time.Millisecond {
		t.Errorf("the inner lease ends %v after the outer", d)
	}
	f.unlock(inner)
	f.unlock(outer)
}

func TestWithoutAnOwnerASecondLockWaits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{})
	l := f.lock(0, "k")
	a := f.ask(t.Context(), 0, "k")
	f.awaitLine(0, "k", 1)
	a.MustWait()
	f.unlock(l)
	f.unlock(a.Got())
}

func TestRevokeFreesTheLockAndTellsItsHolder(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, Config{TTL: time.Hour}).listening() // no renewal is due
	l := f.lock(0, "k")
	a := f.ask(t.Context(), 1, "k")
	f.awaitWaiters("k", 1)
	expect.Equal(t, "revoked", must2(f.lockers[2].Revoke(t.Context(), "k")), true)
	cause(t, l, ErrRevoked)
	next := a.Got()
	expect.ErrorIs(t, l.Unlock(t.Context()), ErrRevoked)
	f.unlock(next)
	expect.Equal(t, "revoked", must2(f.lockers[2].Revoke(t.Context(), "k")), false)
}

func TestWithoutAMessageTheRenewalTellsOfARevocation(t *testing.T) {
	t.Parallel()
	f, p := behind(t, Config{TTL: 4 * time.Second})
	l := f.lock(0, "k")
	p.BlackHoleSubscribers(true)
	expect.Equal(t, "revoked", must2(f.lockers[1].Revoke(t.Context(), "k")), true)
	cause(t, l, ErrRevoked)
}

func TestInspectTellsWhoHasTheLock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{TTL: time.Minute})
	expect.Equal(t, "info", must2(f.lockers[0].Inspect(t.Context(), "k")), Info{})
	l := f.lock(0, "k")
	info := must2(f.lockers[1].Inspect(t.Context(), "k"))
	if info.Left <= 0 || info.Left > time.Minute {
		t.Errorf("%v are left", info.Left)
	}
	info.Left = 0
	expect.Equal(t, "info", info, Info{Token: l.Token(), Instance: config.DefaultInstance(), Fence: l.Fence(), Holds: 1})
	f.unlock(l)
	expect.Equal(t, "info", must2(f.lockers[0].Inspect(context.Background(), "k")), Info{Fence: l.Fence()})
}
