package mutex

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/queue"
)

// Lock waits until it has the lock of the name, or ctx ends: ctx bounds the wait, and has nothing to do with how long the
// lock may be held. An error that matches ErrNotAcquired says that others had the lock until ctx ended. Another one is
// what Redis or the client said: at once when Redis cannot be asked at all, and when it cannot be asked for longer than
// TTL during the wait. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (l *Lease, err error) {
	if k != nil {
		defer k.cfg.Hooks.terms().Asked(name, &err)()
	}
	w, err := k.admit(ctx, name)
	if err != nil {
		return nil, err
	}
	defer k.life.Done()
	line, c, err := k.queueUp(ctx, name, w)
	if err == nil && !c.granted {
		if c.Grant, err = k.queueInRedis(ctx, name, w); err != nil {
			line.vacate()
		}
	}
	if err != nil {
		k.abandon(w)
		return nil, k.refusal(ctx, name, err)
	}
	return k.granted(ctx, name, w, line, c.Grant)
}

// admit begins a call that asks for a lock. Each nil is followed by one done.
func (k *Locker) admit(ctx context.Context, name string) (who, error) {
	if err := k.begin(name); err != nil {
		return who{}, err
	}
	if ctx.Err() != nil {
		k.life.Done()
		return who{}, notAcquired(name, lifecycle.Ended(ctx))
	}
	k.start()
	return newcomer(ctx, lockKey(k.cfg.Prefix, name)), nil
}

// queueUp waits for this caller's turn among those of the process. Fair locks have no such queue, and neither have
// owners: they may hold the very lock that the others wait for.
func (k *Locker) queueUp(ctx context.Context, name string, w who) (*line, call, error) {
	if k.cfg.Fair || w.owned() {
		return nil, call{}, nil
	}
	line, place := k.lines.enter(ctx, name, w)
	if place == nil {
		return line, call{}, nil
	}
	c, err := line.wait(ctx, k.life.Ending, place)
	return line, c, err
}

// queueInRedis waits for the lock in Redis; for a fair one, once few of the process are before this caller.
func (k *Locker) queueInRedis(ctx context.Context, name string, w who) (queue.Grant, error) {
	if !k.cfg.Fair || w.owned() {
		return k.wait(ctx, w, nil)
	}
	g, err := k.doors.Enter(ctx, k.life.Ending, name)
	if err != nil {
		return queue.Grant{}, err
	}
	defer g.Leave()
	w.arrived = g.Arrived()
	return k.wait(ctx, w, g)
}

// refusal is the error of a wait that has ended without the lock.
func (k *Locker) refusal(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(err, ErrClosed):
		return err
	case ctx.Err() != nil:
		return notAcquired(name, lifecycle.Ended(ctx))
	}
	return fmt.Errorf("mutex: lock %q: %w", name, err)
}

// TryLock takes the lock if it is free, in one round trip, and returns ErrNotAcquired if it is not.
func (k *Locker) TryLock(ctx context.Context, name string) (l *Lease, err error) {
	if k != nil {
		defer k.cfg.Hooks.terms().Asked(name, &err)()
	}
	w, err := k.admit(ctx, name)
	if err != nil {
		return nil, err
	}
	defer k.life.Done()
	var line *line
	if !k.cfg.Fair && !w.owned() {
		line = k.lines.enterFirst(name)
	}
	answer, err := k.ask(ctx, w, 0, k.inbox.Address())
	if err == nil && answer.Granted {
		return k.granted(ctx, name, w, line, queue.Grant{Fence: answer.Fence, Sent: answer.Sent, Length: answer.Length})
	}
	line.vacate()
	if err != nil {
		k.abandon(w)
		return nil, k.refusal(ctx, name, err)
	}
	return nil, notAcquired(name, nil)
}

// Do runs f while it holds the lock of the name, for which it waits as Lock does. The context given to f ends when ctx
// does, and when the lease is lost. Do returns f's error, and joined with it what Unlock says: when f returned nil and Do
// does not, the work may have been done beside somebody else's.
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

func nothingToDo(name string) error { return fmt.Errorf("mutex: do %q: f is nil", name) }

// parseGrant reads the fence of a grant. Not granted: it is no later than the last answer, whose fence is given.
func parseGrant(body string, answered int64) (fence int64, granted bool) {
	fence, err := strconv.ParseInt(body, 10, 64)
	return fence, err == nil && fence > answered
}
