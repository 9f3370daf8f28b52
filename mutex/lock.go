package mutex

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cacheguard/go/internal/lock/queue"
)

// Lock waits until it has the lock of the name, or ctx ends. The context bounds the wait, not how long the lock may be
// held. An error that matches ErrNotAcquired says that others had the lock until ctx ended. Any other error comes from
// Redis or the client: Lock returns it at once if Redis cannot be reached at all, or when it stays unreachable for longer
// than TTL during the wait. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	if k == nil {
		return nil, errNilLocker
	}
	asking := k.base.Config.Hooks.Ask(ctx, "Lock", name)
	l, err := k.lock(ctx, name)
	asking.End(err)
	return l, err
}

func (k *Locker) lock(ctx context.Context, name string) (*Lease, error) {
	c, err := k.admit(ctx, name)
	if err != nil {
		return nil, err
	}
	defer k.life.Done()
	q, t, err := c.queueUp(ctx)
	if err == nil && !t.granted {
		if t.Grant, err = c.queueInRedis(ctx); err != nil {
			q.vacate()
		}
	}
	if err != nil {
		c.abandon()
		return nil, lockErrors.Refused(ctx, name, err)
	}
	return c.granted(ctx, q, t.Grant)
}

// admit begins a call that asks for a lock. Each nil is followed by one done.
func (k *Locker) admit(ctx context.Context, name string) (*claim, error) {
	if err := k.begin(name); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		k.life.Done()
		return nil, lockErrors.Refused(ctx, name, nil)
	}
	k.start()
	return k.newClaim(ctx, name), nil
}

// queueUp waits for this caller's turn among those of the process. Fair locks have no such queue, and neither have
// owners: they may hold the very lock that the others wait for.
func (c *claim) queueUp(ctx context.Context) (*localQueue, turn, error) {
	if c.fair || c.owned() {
		return nil, turn{}, nil
	}
	q, place := c.queues.enter(ctx, c.name, c)
	if place == nil {
		return q, turn{}, nil
	}
	t, err := q.wait(ctx, c.life.Ending, place)
	return q, t, err
}

// queueInRedis waits for the lock in Redis; for a fair lock, once only a few callers of the process are ahead
// of this one.
func (c *claim) queueInRedis(ctx context.Context) (queue.Grant, error) {
	if !c.fair || c.owned() {
		return c.wait(ctx)
	}
	g, err := c.doors.Enter(ctx, c.life.Ending, c.name)
	if err != nil {
		return queue.Grant{}, err
	}
	defer g.Leave()
	c.guest, c.arrived = g, g.Arrived()
	return c.wait(ctx)
}

// TryLock takes the lock if it is free, in one round trip, and returns ErrNotAcquired if it is not.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	if k == nil {
		return nil, errNilLocker
	}
	asking := k.base.Config.Hooks.Ask(ctx, "TryLock", name)
	l, err := k.try(ctx, name)
	asking.End(err)
	return l, err
}

func (k *Locker) try(ctx context.Context, name string) (*Lease, error) {
	c, err := k.admit(ctx, name)
	if err != nil {
		return nil, err
	}
	defer k.life.Done()
	var q *localQueue
	if !k.fair && !c.owned() {
		q = k.queues.enterFirst(name)
	}
	answer, err := c.ask(ctx, 0, k.base.Inbox.Address())
	if err == nil && answer.Granted {
		return c.granted(ctx, q, queue.Grant{Fence: answer.Fence, Sent: answer.Sent, Length: answer.Length})
	}
	q.vacate()
	if err != nil || c.trail.Lost() { // a request without an answer may arrive when the lock is free
		c.abandon()
	}
	if err != nil {
		return nil, lockErrors.Refused(ctx, name, err)
	}
	return nil, lockErrors.Taken(name)
}

// Do waits for the lock of the name as Lock does, and runs f while it holds it. The context given to f ends when ctx
// does, and when the lease is lost. Do returns f's error, joined with that of Unlock: if f returned nil and Do does not,
// somebody else may have worked at the same time.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) error {
	if f == nil {
		return nothingToDo(name)
	}
	l, err := k.Lock(ctx, name)
	if err != nil {
		return err
	}
	return l.do(ctx, f)
}

// DoFenced is Do for a function that needs only the fence of the lease. Config.WriteLock of a Guard uses it.
func (k *Locker) DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error {
	if f == nil {
		return nothingToDo(name)
	}
	return k.Do(ctx, name, func(ctx context.Context, l *Lease) error { return f(ctx, l.Fence()) })
}

func nothingToDo(name string) error { return fmt.Errorf("mutex: do %q: f is nil", name) }

// parseGrant reads the fence of a grant. Not granted: it is no later than the last answer, whose fence is given.
func parseGrant(body string, answered int64) (fence int64, granted bool) {
	fence, err := strconv.ParseInt(body, 10, 64)
	return fence, err == nil && fence > answered
}
