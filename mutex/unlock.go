package mutex

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/queue"
)

// unlock gives a lease up. Its tenure ends with that, unless it was lost before.
func (k *Locker) unlock(l *Lease) (int, error) {
	line := l.line
	if !l.hold.End() {
		line = nil
	}
	return k.handOn(l.who, line)
}

// extend makes a lease end TTL from now.
func (k *Locker) extend(ctx context.Context, l *Lease) error {
	answer, err := k.redis.Ask(ctx, l.who.renewal(k.cfg.TTL, 0), nil)
	if err != nil {
		return err
	}
	reply, err := answer.Int()
	if err != nil {
		return err
	}
	return l.hold.Answered(answer.Sent, reply)
}

// handOn gives the lock up, to the next in the line if it may.
func (k *Locker) handOn(w who, line *line) (int, error) {
	code, err := 0, error(nil)
	for first := true; ; first = false {
		next, reply, replyErr := k.release(w, line)
		if first {
			code, err = reply, replyErr
		}
		if next == nil {
			return code, err
		}
		w = next.who // it was given the lock, and has left
	}
}

// release gives the lock up. It returns whoever was given the lock, and did not wait for it any more.
func (k *Locker) release(w who, line *line) (orphan *place, reply int, err error) {
	next, first := line.next()
	h := heir{}
	if next != nil {
		h = heir{id: next.id, inbox: k.inbox.Address(), ttl: k.cfg.TTL, first: first}
	}
	sent := time.Now()
	answer, err := k.redis.Release(w.releasing(h, w.trail.Lost()), k.cfg.TTL)
	fence := int64(0)
	if err == nil {
		fence, err = answer.Int64()
	}
	switch {
	case fence > replyKept:
		if !line.pass(next, queue.Grant{Fence: fence, Sent: sent, Length: k.cfg.TTL}) {
			return next, replyKept, nil
		}
		return nil, replyKept, nil
	case err != nil && next != nil:
		next.trail.Lose() // should it have the lock, it finds out by asking
		line.vacate()
		if line.left(next) {
			k.abandon(next.who)
		}
	default:
		line.vacate()
	}
	return nil, int(fence), err
}
