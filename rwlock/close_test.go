package rwlock

import (
	"context"
	"errors"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestCloseEndsLeasesAndWaitsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	k := f.lockers[1]
	l := must(t, k, (*Locker).Lock, "a")
	held := must(t, f.lockers[0], (*Locker).Lock, "b")
	w, r := wait(t, k, (*Locker).Lock, "b"), wait(t, k, (*Locker).RLock, "b")
	f.awaitWaiting("b", 1, 1)
	for range 2 {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, w := range []*waiter{w, r} {
		<-w.Done
		expect.Equal(t, "a wait ends closed", errors.Is(w.Err(), ErrClosed), true)
	}
	expect.Equal(t, "the lease ends closed", errors.Is(context.Cause(l.Context()), ErrClosed), true)
	expect.Equal(t, "holder of a", f.info("a").Token, "")
	expect.Equal(t, "queue of b", f.info("b").WaitingWriters+f.info("b").WaitingReaders, 0)
	for what, err := range map[string]error{
		"Extend": l.Extend(t.Context()), "Downgrade": l.Downgrade(t.Context()), "TryUpgrade": l.TryUpgrade(t.Context()),
		"Do": k.Do(t.Context(), "a", func(context.Context, *Lease) error { return nil }), "Unlock": l.Unlock(t.Context()),
	} {
		expect.Equal(t, what, errors.Is(err, ErrClosed), true)
	}
	unlock(t, held)
}

func TestNamesWithBracesAreLocksLikeOthers(t *testing.T) {
	t.Parallel()
	everyone := newFleet(t, cluster(t), 1, Config{})
	seen := make(map[string]string)
	for _, name := range []string{"a", "{", "}", "{}", "}{", "a}b{c", `\}`, `\`} {
		l := must(t, everyone.lockers[0], (*Locker).Lock, name)
		key := callerOf(l).Keys[0]
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q are one lock", name, other)
		}
		seen[key] = name
		unlock(t, l)
	}
}

func TestTheLeaseOfAReaderIsRenewedAndAFixedOneEnds(t *testing.T) {
	t.Parallel()
	kept := newFleet(t, standalone(t), 2, Config{TTL: brisk}).listening()
	fixed := newFleet(t, standalone(t), 2, Config{TTL: brisk, FixedLease: true}).listening()
	l := must(t, kept.lockers[0], (*Locker).RLock, "a")
	began := l.TrustedUntil()
	redistest.Await(t, "the lease was renewed more than once", func() bool {
		return l.TrustedUntil().After(began.Add(brisk / 2))
	})
	unlock(t, l)

	held := must(t, fixed.lockers[0], (*Locker).RLock, "a")
	pushed := wait(t, fixed.lockers[1], (*Locker).Lock, "a")
	<-held.Context().Done()
	expect.Equal(t, "lost", errors.Is(context.Cause(held.Context()), ErrLeaseLost), true)
	unlock(t, pushed.Got())
}
