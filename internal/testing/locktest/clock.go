package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// leap is by how much clocks are set forward and back: more than any lease lasts, and than any test waits.
const leap = time.Hour

// clockTests are about the wall clocks of servers, and set them as they need them.
var clockTests = map[string]func(*bench){
	"a lease lives on when the server's clock is set back":                                func(b *bench) { livesOn(b, -leap) },
	"a lease lives on when the server's clock is set forward":                             func(b *bench) { livesOn(b, leap) },
	"fences grow when the server's clock is set forward and that ends leases":             endsEarly,
	"the lock of a killed holder passes on when the server's clock was set back":          func(b *bench) { passesOn(b, -leap, (*redistest.Process).Kill, b.server.LateWhenKilled) },
	"the lock of a killed holder passes on when the server's clock was set forward":       func(b *bench) { passesOn(b, leap, (*redistest.Process).Kill, b.server.LateWhenKilled) },
	"the lock of a frozen holder passes on when the server's clock was set back":          func(b *bench) { passesOn(b, -leap, (*redistest.Process).Pause, b.server.LateWhenFrozen) },
	"the lock of a frozen holder passes on when the server's clock was set forward":       func(b *bench) { passesOn(b, leap, (*redistest.Process).Pause, b.server.LateWhenFrozen) },
	"a lock whose connection was cut passes on in time when the server's clock goes back": func(b *bench) { cutAndSet(b, -leap) },
	"a lock whose connection was cut passes on in time when the server's clock leaps":     func(b *bench) { cutAndSet(b, leap) },
}

// set sets the clocks of all members, and makes sure that the server has another time.
func (b *bench) set(ahead time.Duration) {
	b.Helper()
	for _, m := range b.server.Members {
		if err := m.SetClock(ahead); errors.Is(err, errors.ErrUnsupported) {
			b.Skip(err)
		} else if err != nil {
			b.Fatal(err)
		}
	}
	if off := time.Until(b.kind.Clock(b, b.server.Addr)) - ahead; off.Abs() > leap/2 {
		b.Fatalf("the server's clock is off by %v", off)
	}
}

// livesOn has a holder that renews its lease often enough, and one that waits for it to end.
func livesOn(b *bench, ahead time.Duration) {
	if ahead > 0 && b.kind.WallClock {
		b.Skip("the lease ends early")
	}
	b.set(0)
	l, next := b.contested(b.kind.Open(b, b.server.Addr, b.longer()))
	b.set(ahead)
	b.renewed(l, next, b.longer().TTL)
	if cause := context.Cause(l.Context()); cause != nil && ahead > 0 && b.kind.LeapsEndSessions {
		expect.ErrorIs(b, cause, b.kind.LeaseLost)
	} else {
		expect.Equal(b, "why the lease has ended", cause, nil)
		expect.Equal(b, "granted before the end of the lease", len(next), 0)
		b.unlock(l)
	}
	after, _ := b.grantedAtLast(next)
	expect.Equal(b, "the first holder's context has ended", l.Context().Err() != nil, true)
	expectGreater(b, after.Fence(), l.Fence())
	b.unlock(after)
}

// grantedAtLast asks again if the wait failed because the server has ended the session.
func (b *bench) grantedAtLast(result <-chan outcome) (l Lease, again bool) {
	b.Helper()
	if !b.kind.LeapsEndSessions {
		return b.granted(result), false
	}
	o := <-result
	if o.err != nil {
		b.Log("the wait failed:", o.err)
		return b.lock(b.open()), true
	}
	return o.lease, false
}

// endsEarly asks at once after the leap. If the holder was faster, its lease is whole again, by the new time.
func endsEarly(b *bench) {
	if !b.kind.WallClock {
		b.Skip("no lease ends early")
	}
	b.set(0)
	l := b.lock(b.kind.Open(b, b.server.Addr, b.longer())) // a long one would notice late
	k := b.open()
	var after Lease
	ahead := time.Duration(0)
	await(b, "the lock is somebody else's", func() (granted bool) {
		ahead += leap
		b.set(ahead)
		var err error
		after, err = k.TryLock(patient(b), "x")
		return err == nil
	})
	b.Logf("the first holder's context lives: %v", l.Context().Err() == nil)
	expectGreater(b, after.Fence(), l.Fence())
	select {
	case <-l.Context().Done():
	case <-patient(b).Done():
		b.Fatal("the first holder does not notice")
	}
	expect.ErrorIs(b, context.Cause(l.Context()), b.kind.LeaseLost)
	expect.ErrorIs(b, l.Unlock(context.Background()), b.kind.LeaseLost)
	expect.Equal(b, "the context of the second lives", after.Context().Err(), nil)
	b.unlock(after)
}

// passesOn has the holder die when the clock was set, before it could renew its lease by the new time, and another wait.
func passesOn(b *bench, ahead time.Duration, die func(*redistest.Process), late bool) {
	b.set(0)
	holder := b.child("lock")
	fence := b.fenceOf(holder)
	next := b.ask(patient(b), b.open())
	b.awaitAsking(2)
	b.set(ahead)
	die(holder)
	if ahead < 0 && late {
		b.mendIfLate(next)
	}
	l := b.granted(next)
	expectGreater(b, l.Fence(), fence)
	err := l.Unlock(context.Background())
	if ahead > 0 && len(b.server.Members) > 1 && errors.Is(err, b.kind.LeaseLost) {
		b.Log("it was granted before the last member's clock leapt, and ended with that")
		l = b.lock(b.open())
		expectGreater(b, l.Fence(), fence)
		err = l.Unlock(context.Background())
	}
	expect.ErrorIs(b, err)
	holder.Kill()
}

// mendIfLate does what an operator can who does not want to wait until the clock is where it was: end the session, or set the clock right.
func (b *bench) mendIfLate(next <-chan outcome) {
	b.Helper()
	for end := time.After(3 * b.kind.TTL); len(next) == 0; {
		select {
		case <-end:
			b.Log("the lock is not free after 3 TTL")
			if b.kind.Cut != nil {
				b.kind.Cut(b, b.server.Addr, b.prefix, "x")
			} else {
				b.set(0)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// cutAndSet sets the clock when the next one waits for the end of what the holder may still trust.
func cutAndSet(b *bench, ahead time.Duration) {
	if b.kind.Cut == nil {
		b.Skip("locks do not depend on a connection")
	}
	b.set(0)
	l, next := b.contested(b.kind.Open(b, b.server.Addr, b.short()))
	b.kind.Cut(b, b.server.Addr, b.prefix, "x")
	await(b, "the next is the first in the queue", func() bool { return b.kind.Asking(b, b.server.Addr, b.prefix, "x") == 1 })
	b.set(ahead)
	until := l.TrustedUntil()
	after, again := b.grantedAtLast(next) // one that asks after the leap has the rest of the wait only by the server's clock
	if now := time.Now(); now.Before(until) && !again {
		b.Errorf("granted %v before the end of the trust", until.Sub(now))
	}
	expectGreater(b, after.Fence(), l.Fence())
	b.unlock(after)
}
