package mutex

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

// Lock waits until it has the lock of the name, or ctx ends: ctx bounds the wait, and has nothing to do with how long the
// lock may be held. An error that matches ErrNotAcquired says that others had the lock until ctx ended. Another one is
// what Redis or the client said: at once when Redis cannot be asked at all, and when it cannot be asked for longer than
// TTL during the wait. The caller unlocks the lease.
func (k *Locker) Lock(ctx context.Context, name string) (*Lease, error) {
	if err := k.begin(name); err != nil {
		return nil, err
	}
	defer k.calls.Done()
	if ctx.Err() != nil {
		return nil, notAcquired(name, ended(ctx))
	}
	k.start()
	w := newcomer(ctx, lockKey(k.cfg.Prefix, name))
	line, c, err := k.queueUp(ctx, name, w)
	if err == nil && !c.granted {
		c.Grant, err = k.wait(ctx, w)
		if err != nil {
			k.abandon(w)
			line.vacate()
		}
	}
	if err != nil {
		return nil, k.refusal(ctx, name, err)
	}
	return k.newLease(ctx, w, line, c.Grant), nil
}

// queueUp waits for this caller's turn among those of the process. Fair locks have no such queue, and neither have
// owners: they may hold the very lock that the others wait for.
func (k *Locker) queueUp(ctx context.Context, name string, w who) (*line, call, error) {
	if k.cfg.Fair || w.owned() {
		return nil, call{}, nil
	}
	line, place := k.lines.enter(name, w)
	if place == nil {
		return line, call{}, nil
	}
	c, err := line.wait(ctx, k.ending, place)
	return line, c, err
}

// refusal is the error of a wait that has ended without the lock.
func (k *Locker) refusal(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(err, ErrClosed):
		return err
	case ctx.Err() != nil:
		return notAcquired(name, ended(ctx))
	}
	return fmt.Errorf("mutex: lock %q: %w", name, err)
}

// TryLock takes the lock if it is free, in one round trip, and returns ErrNotAcquired if it is not.
func (k *Locker) TryLock(ctx context.Context, name string) (*Lease, error) {
	if err := k.begin(name); err != nil {
		return nil, err
	}
	defer k.calls.Done()
	if ctx.Err() != nil {
		return nil, notAcquired(name, ended(ctx))
	}
	k.start()
	w := newcomer(ctx, lockKey(k.cfg.Prefix, name))
	var line *line
	if !k.cfg.Fair && !w.owned() {
		line = k.lines.enterFirst(name)
	}
	sent := time.Now()
	answer, err := k.ask(ctx, w, 0, k.inbox.Address())
	if err == nil && answer.Granted {
		return k.newLease(ctx, w, line, queue.Grant{Fence: answer.Fence, Sent: sent, Length: answer.Length}), nil
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
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context, *Lease) error) (err error) {
	l, err := k.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	ctx, cancel := l.within(ctx)
	defer cancel()
	return f(ctx, l)
}

// within returns a context that ends with ctx, and with the lease's, whose cause it has then.
func (l *Lease) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// unlock gives the lock up, to the next in the line if it may.
func (k *Locker) unlock(ctx context.Context, w who, line *line) (int, error) {
	code, err := 0, error(nil)
	for first := true; ; first = false {
		next, reply, replyErr := k.release(ctx, w, line)
		if first {
			code, err = reply.code, replyErr
		}
		if next == nil {
			return code, err
		}
		w = next.who // it was given the lock, and has left
	}
}

// release gives the lock up. It returns whoever was given the lock, and did not wait for it any more.
func (k *Locker) release(ctx context.Context, w who, line *line) (orphan *place, reply released, err error) {
	next, first := line.next()
	h := heir{}
	if next != nil {
		h = heir{id: next.id, inbox: k.inbox.Address(), ttl: k.cfg.TTL, first: first}
	}
	sent := time.Now()
	reply, err = detach.Run(context.WithoutCancel(ctx), &k.tasks, k.redis,
		func(ctx context.Context, rdb script.Processor) (released, error) { return w.release(ctx, rdb, h) },
		func(released, error) { k.giveUpFor(line, next) })
	switch {
	case reply.code == replyPassed:
		reply.code = replyKept
		if !line.pass(next, queue.Grant{Fence: reply.fence, Sent: sent, Length: k.cfg.TTL}) {
			return next, reply, err
		}
	case err != nil:
		line.vacate() // the next, should it have the lock, finds out by asking
		k.giveUpFor(line, next)
	default:
		line.vacate()
	}
	return nil, reply, err
}

// giveUpFor gives up the lock that was given, or not, to somebody who has left.
func (k *Locker) giveUpFor(line *line, next *place) {
	if next != nil && line.left(next) {
		k.abandon(next.who)
	}
}

// parseGrant reads a fence.
func parseGrant(body string) (fence int64, ok bool) {
	fence, err := strconv.ParseInt(body, 10, 64)
	return fence, err == nil
}
