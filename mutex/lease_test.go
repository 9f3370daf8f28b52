package mutex

import (
	"context"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestALeaseLivesAsLongAsItIsRenewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{TTL: 2 * time.Second})
	l := f.lock(0, "k")
	began := l.TrustedUntil()
	redistest.Await(t, "renewals", func() bool { return time.Now().After(began) || l.Context().Err() != nil })
	if err := context.Cause(l.Context()); err != nil {
		t.Error(err)
	}
	f.unlock(l)
}

func TestAFixedLeaseEndsUnlessItIsExtended(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{TTL: 3 * time.Second, FixedLease: true})
	l := f.lock(0, "k")
	first := l.TrustedUntil()
	redistest.Await(t, "some time", func() bool { return time.Until(first) < 2500*time.Millisecond })
	if err := l.Extend(t.Context()); err != nil || !l.TrustedUntil().After(first) {
		t.Errorf("not extended: %v", err)
	}
	cause(t, l, ErrLeaseLost)
	expect.ErrorIs(t, l.Extend(t.Context()), ErrLeaseLost)
	next := f.lock(1, "k")
	expect.ErrorIs(t, l.Unlock(t.Context()), ErrLeaseLost)
	f.unlock(next)
}

func TestMaxHoldEndsALeaseThatIsRenewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, Config{TTL: brisk, MaxHold: 3 * time.Second})
	l := f.lock(0, "k")
	a := f.ask(t.Context(), 1, "k")
	cause(t, l, ErrLeaseLost)
	f.unlock(a.lease())
}
