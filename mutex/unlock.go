package mutex

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
)

// unlock gives a lease up. Its turn ends with that, unless it was lost before.
func (k *Locker) unlock(l *Lease) (int, error) {
	q := l.queue
	if !l.hold.End() {
		q = nil
	}
	if rest := l.rest(); rest > 0 {
		return k.park(l.claim, q, rest)
	}
	return k.handOver(l.claim, q)
}

// extend makes a lease end TTL from now.
func (k *Locker) extend(ctx context.Context, l *Lease) error {
	reply, sent, err := k.base.Renew(ctx, l.claim.renewal(k.base.Config.TTL, 0))
	if err != nil {
		return err
	}
	return l.hold.Answered(sent, reply)
}

// handOver gives the lock up, to the next in the local queue if it may.
func (k *Locker) handOver(c *claim, q *localQueue) (int, error) {
	code, err := 0, error(nil)
	for first := true; ; first = false {
		next, reply, replyErr := k.release(c, q)
		if first {
			code, err = reply, replyErr
		}
		if next == nil {
			return code, err
		}
		c = next.claim // it was given the lock, and has left
	}
}

// release gives the lock up. It returns the successor that was given the lock but did not wait for it any
// more.
func (k *Locker) release(c *claim, q *localQueue) (orphan *place, reply int, err error) {
	next, first := q.next()
	to := successor{}
	if next != nil {
		to = successor{id: next.id, inbox: k.base.Inbox.Address(), ttl: k.base.Config.TTL, first: first}
	}
	sent := time.Now()
	answer, err := k.base.Redis.Release(c.releasing(to, c.trail.Lost()), k.base.Config.TTL)
	fence := int64(0)
	if err == nil {
		fence, err = answer.Int64()
	}
	switch {
	case fence > queue.Done:
		if !q.pass(next, queue.Grant{Fence: fence, Sent: sent, Length: k.base.Config.TTL}) {
			return next, queue.Done, nil
		}
		return nil, queue.Done, nil
	case err != nil && next != nil:
		next.trail.Lose() // if it has the lock, it finds out by asking
		q.vacate()
		if q.left(next) {
			next.abandon()
		}
	default:
		q.vacate()
	}
	return nil, int(fence), err
}
