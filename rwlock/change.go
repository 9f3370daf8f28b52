package rwlock

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
)

// Downgrade makes a writer a reader, without letting go of the lock, and admits the waiting readers. From the
// call on, treat the lease as one for reading, whatever Downgrade returns. The error matches ErrLeaseLost or ErrRevoked if
// there was no lease any more. Any other error says nothing about the lock: call Downgrade again. For a reader it is
// Extend.
func (l *Lease) Downgrade(ctx context.Context) error {
	held := l.core()
	return held.Change(ctx, "downgrade", func() error {
		c, fence := rw.ClaimOf(held), held.Fence()
		c.Become(false, fence)
		reply, sent, err := ask(ctx, held, toReader(c.Calls, held.Token, held.Locker.Config.TTL, fence))
		if err != nil {
			return err
		}
		return held.Answered(sent, int(reply))
	})
}

// TryUpgrade makes a reader the writer, with a new Fence, if it is the only reader and no writer waits. Otherwise it
// returns ErrNotAcquired at once, and the lease is for reading as before: if two readers both insist, one must unlock.
// It never overtakes a writer in the queue, since readers that take turns upgrading would starve that writer. The
// error matches ErrLeaseLost or ErrRevoked if there was no lease any more. Any other error says nothing about the
// lock, which may be held for writing in Redis: call TryUpgrade again, or unlock. For a writer it does nothing.
func (l *Lease) TryUpgrade(ctx context.Context) error {
	held := l.core()
	return held.Change(ctx, "upgrade", func() error { return l.upgrade(ctx, held) })
}

func (l *Lease) upgrade(ctx context.Context, held *locker.Lease) error {
	if l.Writes() {
		return nil
	}
	c, k := rw.ClaimOf(held), held.Locker
	reply, sent, err := ask(ctx, held, toWriter(c.Calls, held.Token, k.Config.TTL, held.Fence()))
	switch {
	case err != nil:
		return err
	case reply > queue.Done:
		if err := k.Confirm(ctx, c.Renewing(held.Token, k.Config.TTL, reply), &queue.Grant{}); err != nil {
			return err
		}
		c.Become(true, reply)
		return held.Answered(sent, queue.Done)
	case reply == queue.Done:
		if err := held.Answered(sent, queue.Done); err != nil {
			return err
		}
		return ErrNotAcquired
	}
	return held.Answered(sent, int(reply))
}

// ask runs a call that returns a number.
func ask(ctx context.Context, held *locker.Lease, call script.Call) (reply int64, sent time.Time, err error) {
	answer, err := held.Locker.Redis.Ask(ctx, call, nil)
	if err != nil {
		return 0, sent, err
	}
	reply, err = answer.Int64()
	return reply, answer.Sent, err
}

// toReader makes the writer with this fence a reader. It returns Done, or why the token does not hold the lock.
func toReader(c queue.Calls, token string, ttl time.Duration, fence int64) script.Call {
	return c.Call(c.Downgrade, token, script.Millis(ttl), fence)
}

// toWriter makes a reader the writer. It returns the new fence, Done if others hold or wait, or why the token does not hold.
func toWriter(c queue.Calls, token string, ttl time.Duration, fence int64) script.Call {
	return c.Call(c.Upgrade, token, script.Millis(ttl), fence)
}
