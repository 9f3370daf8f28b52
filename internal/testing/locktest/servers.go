package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// cutConnection cuts the holder's connection on the server's side.
func cutConnection(b *bench) {
	if b.kind.Cut == nil {
		b.Skip("locks do not depend on a connection")
	}
	l, next := b.contested(b.kind.Open(b, b.server.Addr, b.short()))
	b.kind.Cut(b, b.server.Addr, b.prefix, "x")
	until := l.TrustedUntil() // no renewal comes after the cut, so this or an earlier time is the holder's last
	after := b.granted(next)
	if now := time.Now(); now.Before(until) {
		b.Errorf("granted %v before the end of the trust", until.Sub(now))
	}
	expect.ErrorIs(b, context.Cause(l.Context()), b.kind.LeaseLost)
	expect.ErrorIs(b, l.Unlock(context.Background()), b.kind.LeaseLost)
	expectGreater(b, after.Fence(), l.Fence())
	b.unlock(after)
}

// frozenServer stops the server, or a majority of the members. The lease ends all the same, and not before its time.
func frozenServer(b *bench) { b.frozen(b.server.Members[len(b.server.Members)/2:]) } // a majority

// frozenFollowers leaves a leader alone, which gives up, so that the members elect one when they are back, and count the time of sessions anew.
func frozenFollowers(b *bench) {
	leader := b.server.Leader(b)
	b.frozen(slices.Delete(slices.Clone(b.server.Members), leader, leader+1))
}

func (b *bench) frozen(members []Member) {
	k := b.kind.Open(b, b.server.Addr, b.short())
	l := b.lock(k)
	for _, m := range members {
		m.Pause()
	}
	select {
	case <-l.Context().Done():
	case <-patient(b).Done():
		b.Fatal("the context did not end")
	}
	expect.ErrorIs(b, context.Cause(l.Context()), b.kind.LeaseLost)
	expect.ErrorIs(b, l.Unlock(context.Background()), b.kind.LeaseLost) // some also say that the server does not answer
	ctx, cancel := context.WithTimeout(context.Background(), time.Second/10)
	defer cancel()
	if _, err := k.Lock(ctx, "x"); err == nil {
		b.Error("a frozen server has granted a lock")
	}
	<-time.After(3 * b.kind.TTL / 2) // what a Locker has left behind is older than its TTL; the servers, which were frozen, see the session live
	for _, m := range members {
		m.Resume()
	}
	next := b.open() // whatever the first client makes of it
	fence := l.Fence()
	await(b, "the lock is free again", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		l, err := next.Lock(ctx, "x")
		if err != nil {
			b.Log(err)
			return false
		}
		expectGreater(b, l.Fence(), fence)
		return l.Unlock(context.Background()) == nil
	})
}

// restartedServer kills all servers under load, and starts them again.
func restartedServer(b *bench) {
	s := b.storm()
	for range 2 {
		for _, m := range b.server.Members {
			m.Kill()
		}
		for _, m := range b.server.Members {
			m.Start()
		}
		s.goesOn(5)
	}
	s.end()
}

func killedLeader(b *bench) {
	s := b.storm()
	for range 2 {
		leader := b.server.Members[b.server.Leader(b)]
		leader.Kill()
		s.goesOn(5)
		leader.Start()
		s.goesOn(5)
	}
	s.end()
}

// frozenLeader freezes the leader until another one has taken over and granted locks.
func frozenLeader(b *bench) {
	s := b.storm()
	s.fenced = b.server.StaleLeaders
	for range 2 {
		leader := b.server.Members[b.server.Leader(b)]
		leader.Pause()
		s.goesOn(5)
		leader.Resume()
		s.goesOn(5)
	}
	s.end()
}

// returnedLeader freezes the leader for longer than the lease that it knows of, while its successor renews that, unless it is lost before.
func returnedLeader(b *bench) {
	ttl := b.longer().TTL
	l, next := b.contested(b.kind.Open(b, b.server.Addr, b.longer()))
	leader := b.server.Members[b.server.Leader(b)]
	leader.Pause()
	b.renewed(l, next, 3*ttl/2)
	early := l.Context().Err() != nil // nobody has renewed it in time: its client was connected to the leader
	leader.Resume()
	b.renewed(l, next, ttl)
	if early || b.server.StaleLeaders && (len(next) > 0 || l.Context().Err() != nil) {
		after := b.granted(next)
		granted := time.Now()
		<-l.Context().Done()
		b.Logf("the lease was lost, by the freeze itself: %v. Its holder trusted it for %v more", early, time.Since(granted))
		expect.ErrorIs(b, context.Cause(l.Context()), b.kind.LeaseLost)
		expectGreater(b, after.Fence(), l.Fence())
		return
	}
	b.livedOn(l, next)
}
