package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/lock/queue"
)

// Downgrade makes a writer a reader, without letting go of the lock, and admits the waiting readers. From the
// call on, treat the lease as one for reading, whatever Downgrade returns. The error matches ErrLeaseLost or ErrRevoked if
// there was no lease any more. Any other error says nothing about the lock: call Downgrade again. For a reader it is
// Extend.
func (l *Lease) Downgrade(ctx context.Context) error {
	if l == nil {
		return errNilLease
	}
	c := l.claim
	done, err := l.begin(ctx)
	if err != nil {
		return l.wrap("downgrade", err)
	}
	defer done()
	fence := l.become(false, 0)
	reply, sent, err := c.Run(ctx, c.lock().toReader(c.Token, c.Config.TTL, fence))
	if err == nil {
		err = l.hold.Answered(sent, int(reply))
	}
	return l.wrap("downgrade", err)
}

// TryUpgrade makes a reader the writer, with a new Fence, if it is the only reader and no writer waits. Otherwise it
// returns ErrNotAcquired at once, and the lease is for reading as before: if two readers both insist, one must unlock.
// It never overtakes a writer in the queue, since readers that take turns upgrading would starve that writer. The
// error matches ErrLeaseLost or ErrRevoked if there was no lease any more. Any other error says nothing about the
// lock, which may be held for writing in Redis: call TryUpgrade again, or unlock. For a writer it does nothing.
func (l *Lease) TryUpgrade(ctx context.Context) error {
	if l == nil {
		return errNilLease
	}
	c := l.claim
	done, err := l.begin(ctx)
	if err != nil {
		return l.wrap("upgrade", err)
	}
	defer done()
	if l.Writes() {
		return nil
	}
	reply, sent, err := c.Run(ctx, c.lock().toWriter(c.Token, c.Config.TTL, l.Fence()))
	switch {
	case err != nil:
	case reply > queue.Done:
		if err = c.confirm(ctx, &queue.Grant{Fence: reply}); err == nil {
			l.become(true, reply)
			err = l.hold.Answered(sent, queue.Done)
		}
	case reply == queue.Done:
		if err = l.hold.Answered(sent, queue.Done); err == nil {
			err = ErrNotAcquired
		}
	default:
		err = l.hold.Answered(sent, int(reply))
	}
	return l.wrap("upgrade", err)
}

// become notes how the lock is held, with which fence unless it stays the same, and returns the fence.
func (l *Lease) become(writes bool, fence int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = writes
	if fence != 0 {
		l.fence = fence
	}
	return l.fence
}
