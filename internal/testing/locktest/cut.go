package locktest

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/expect"
)

// line is how one Locker reaches the server: over a relay before each member, while the others do without.
type line struct {
	addr   string
	relays []*distance.Proxy
}

func (b *bench) line() *line {
	b.Helper()
	l := &line{}
	var addrs []string
	for _, door := range b.server.Doors {
		relay, err := distance.Start(door, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = relay.Close() }) // it is of no use any more
		l.relays = append(l.relays, relay)
		addrs = append(addrs, relay.Addr())
	}
	l.addr = b.kind.Over(addrs)
	return l
}

// cut has everything vanish on the way to and from all members, or lets it arrive.
func (l *line) cut(on bool) {
	for _, relay := range l.relays {
		relay.Cut(on)
	}
}

// accepted is how many connections the Locker has made.
func (l *line) accepted() (n int) {
	for _, relay := range l.relays {
		n += relay.Accepted()
	}
	return n
}

// cutOff cuts the network before the holder alone. Neither side hears of it.
func cutOff(b *bench) {
	line := b.line()
	k := b.kind.Open(b, line.addr, b.short())
	l, next := b.contested(k)
	line.cut(true)
	after := b.granted(next)
	b.overBefore(l, time.Now())
	expect.ErrorIs(b, context.Cause(l.Context()), b.kind.LeaseLost)
	line.cut(false)
	b.reaches(k)
	expect.ErrorIs(b, l.Unlock(context.Background()), b.kind.LeaseLost)
	b.stillHeld(after, l)
	b.unlock(b.lock(k))
}

// heldUpUnlock has the holder unlock in the cut. Its request arrives when the next one has the lock.
func heldUpUnlock(b *bench) {
	line := b.line()
	k := b.kind.Open(b, line.addr, b.short())
	l, next := b.contested(k)
	line.cut(true)
	if l.Unlock(context.Background()) == nil {
		b.Error("an unlock that has not reached the server says that it was done")
	}
	after := b.granted(next)
	b.overBefore(l, time.Now())
	line.cut(false)
	b.reaches(k)
	b.stillHeld(after, l)
	b.unlock(b.lock(k))
}

// cutOffWaiter cuts off the first waiter. It may be granted the lock, but learns of that only when another one has it.
func cutOffWaiter(b *bench) {
	line := b.line()
	cfg := b.short()
	cfg.TTL *= 2 // so that it waits for longer than a silent waiter counts as alive
	k := b.kind.Open(b, line.addr, cfg)
	l := b.lock(b.open())
	first := b.ask(patient(b), k)
	waits := b.awaitAsking(2)
	next := b.ask(patient(b), b.open())
	if waits {
		b.awaitAsking(3)
	}
	line.cut(true)
	b.unlock(l)
	after := b.granted(next)
	line.cut(false)
	b.reaches(k)
	var late outcome
	select {
	case late = <-first:
		if late.err == nil && late.lease.Context().Err() == nil {
			b.Error("two have the lock")
		}
		first = nil
	default:
	}
	b.stillHeld(after, l)
	if first != nil {
		late = <-first
	}
	if late.err == nil {
		_ = late.lease.Unlock(context.Background()) // it may have ended
	}
	b.awaitAsking(0)
}

// overBefore checks that a lease had ended, and its trust with it, when another one was granted.
func (b *bench) overBefore(l Lease, granted time.Time) {
	b.Helper()
	if until := l.TrustedUntil(); granted.Before(until) {
		b.Errorf("granted %v before the end of the trust", until.Sub(granted))
	}
	expect.Equal(b, "the first holder's context has ended", l.Context().Err() != nil, true)
}

// reaches waits until a Locker that was cut off gets answers again.
func (b *bench) reaches(k Locks) {
	b.Helper()
	await(b, "it reaches the server again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		l, err := k.Lock(ctx, "y")
		return err == nil && l.Unlock(ctx) == nil
	})
}

// stillHeld checks that nothing that comes from the last holder has taken the lock away, and gives it up.
func (b *bench) stillHeld(l, last Lease) {
	b.Helper()
	_, err := b.open().TryLock(patient(b), "x")
	expect.ErrorIs(b, err, b.kind.NotAcquired)
	expect.Equal(b, "why the next one's lease has ended", context.Cause(l.Context()), nil)
	expectGreater(b, l.Fence(), last.Fence())
	b.unlock(l)
}

// cutOffFromOne cuts the holder off from the leader, or from one of several that have none, for longer than its lease.
func cutOffFromOne(b *bench) {
	if len(b.server.Members) == 1 {
		b.Skip("there is only one member")
	}
	line := b.line()
	k := b.kind.Open(b, line.addr, b.longer())
	from := line.relays[0]
	if b.server.Leader != nil {
		from = line.relays[b.server.Leader(b)]
	}
	l := b.lock(k)
	if b.server.Leader == nil {
		b.renewed(l, nil, 1) // all have heard of it: with a bare majority, the cut would take one of those
	}
	next := b.ask(patient(b), b.open())
	b.awaitAsking(2)
	made, there := line.accepted(), from.Accepted() > 0
	from.Cut(true)
	defer from.Cut(false) // Close waits for answers
	b.renewed(l, next, b.longer().TTL)
	if l.Context().Err() != nil && b.kind.OneConnection && (there || line.accepted() > made) {
		b.Log("the lease was lost with the only connection")
		after := b.granted(next)
		b.overBefore(l, time.Now())
		expect.ErrorIs(b, context.Cause(l.Context()), b.kind.LeaseLost)
		expectGreater(b, after.Fence(), l.Fence())
		b.unlock(after)
		return
	}
	b.livedOn(l, next)
}

// brokenConnections breaks all connections of the holder, which makes others.
func brokenConnections(b *bench) {
	if b.kind.Cut != nil {
		b.Skip("locks depend on a connection")
	}
	line := b.line()
	l, next := b.contested(b.kind.Open(b, line.addr, b.longer()))
	for _, relay := range line.relays {
		relay.Break()
	}
	b.renewed(l, next, b.longer().TTL/3)
	b.livedOn(l, next)
}

// livedOn checks that a lease lives, and passes the lock on.
func (b *bench) livedOn(l Lease, next <-chan outcome) {
	b.Helper()
	expect.Equal(b, "why the lease has ended", context.Cause(l.Context()), nil)
	expect.Equal(b, "granted before the end of the lease", len(next), 0)
	b.unlock(l)
	b.unlock(b.granted(next))
}
