package locktest

import (
	"context"
	"time"
)

// lostDisk takes the data of the only server, or of one of several.
func lostDisk(b *bench) {
	if len(b.server.Members) > 1 {
		lostMember(b)
		return
	}
	cfg := b.config()
	cfg.TTL = time.Minute
	began := time.Now()
	l := b.lock(b.kind.Open(b, b.server.Addr, cfg))
	b.server.Members[0].Lose()
	next := b.kind.Open(b, b.server.Addr, cfg)
	var after Lease
	await(b, "the lock is somebody else's", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		after, err = next.TryLock(ctx, "x")
		return err == nil
	})
	switch took := time.Since(began); {
	case took > cfg.TTL:
		b.Skipf("the server took %v to come back, and the lock would have ended by then", took)
	case b.kind.Clocked:
		expectGreater(b, after.Fence(), l.Fence())
	}
	b.Logf("forgotten: fence %d after %d; the first holder's context lives: %v", after.Fence(), l.Fence(), l.Context().Err() == nil)
}

// lostMember takes the data of one member under load, of the one that leads if one does, and has it replaced.
func lostMember(b *bench) {
	s := b.storm()
	lost := 0
	if b.server.Leader != nil {
		lost = b.server.Leader(b)
	}
	b.server.Members[lost].Lose()
	s.goesOn(5)
	s.end()
}
