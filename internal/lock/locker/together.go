package locker

import (
	"context"
	"errors"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Beside makes the calls of the lock with that index, which do what its holder has to do at once: the updates of a
// Guard take a lock, and give it up, in one step with that.
type Beside struct {
	Take func(i int, ask script.Call) script.Call     // has the reply of ask
	Undo func(i int, release script.Call) script.Call // undoes it if the lock is not to be had, or nobody knows; its reply is not looked at
}

// Unlocked is how a lock was given up.
type Unlocked struct {
	Sent   bool  // the call was: the lock was not given up before
	Failed error // of the call: it may yet run
	Lock   error // as Unlock returns it
}

// TryTogether takes all of the locks, or none. It waits for nobody: then it returns what matches ErrNotAcquired.
func TryTogether(ctx context.Context, k *Locker, names []string, claim func(name string) *Queued, b Beside) ([]*Queued, error) {
	for _, name := range names {
		if err := k.Name(name, lifecycle.LongestName); err != nil {
			return nil, err
		}
	}
	if err := k.Begin(names[0]); err != nil {
		return nil, err
	}
	defer k.Life.Done()
	if ctx.Err() != nil {
		return nil, k.Refused(ctx, names[0], nil)
	}
	claims := make([]*Queued, len(names))
	for i, name := range names {
		claims[i] = claim(name)
		claims[i].undo = func(release script.Call) script.Call { return b.Undo(i, release) }
	}
	grants, err := askTogether(ctx, k, claims, b.Take)
	if err != nil {
		return nil, k.Refused(ctx, names[0], err)
	}
	late := error(nil)
	for i, c := range claims {
		c.Lease.begin(ctx, grants[i])
		if ended := c.Lease.Context(); ended.Err() != nil {
			late = k.TooLate(ended, names[i])
		}
	}
	if late != nil {
		UnlockTogether(k, claims, b.Undo, func(_ int, reply *script.Reply) (int, error) { return queue.Done, reply.Err() })
		return nil, late
	}
	return claims, nil
}

// askTogether is Queued.Try for many claims. take makes the calls. If one is not granted, all have been abandoned.
func askTogether(ctx context.Context, k *Locker, claims []*Queued, take func(i int, ask script.Call) script.Call) ([]queue.Grant, error) {
	calls, trails := make([]script.Call, len(claims)), make([]*send.Trail, len(claims))
	for i, c := range claims {
		calls[i], trails[i] = take(i, c.asking(ctx, 0, "")), &c.trail
	}
	replies, errs := k.Redis.AskTogether(ctx, calls, trails)
	grants, failed := make([]queue.Grant, len(claims)), error(nil)
	var granted []*Queued
	for i, c := range claims {
		g, err := c.tried(c.read(replies[i], errs[i]))
		switch {
		case err == nil:
			grants[i], granted = g, append(granted, c)
		case failed == nil || errors.Is(failed, lifecycle.ErrNotAcquired): // what Redis says counts more
			failed = err
		}
	}
	if failed == nil {
		return grants, nil
	}
	for _, c := range granted {
		c.Abandon()
	}
	return nil, failed
}

// UnlockTogether gives up the locks with the calls that give makes. read returns the release's part of a reply.
func UnlockTogether(
	k *Locker, held []*Queued, give func(i int, release script.Call) script.Call, read func(i int, reply *script.Reply) (int, error),
) []Unlocked {
	all, before := make([]Unlocked, len(held)), make([]error, len(held))
	var calls []script.Call
	var at []int              // of the calls, in held
	counted := k.Life.Enter() // else Close has aborted all leases
	for i, c := range held {
		l := &c.Lease
		l.ending.Lock()
		defer l.ending.Unlock()
		switch {
		case l.ended:
			all[i].Lock = l.err
		case !counted:
			l.endLocked(context.Cause(l.Context()))
			all[i].Lock = l.err
		default:
			before[i] = l.hold.End()
			calls, at = append(calls, give(i, c.release())), append(at, i)
		}
	}
	if !counted {
		return all
	}
	defer k.Life.Leave()
	if len(calls) == 0 {
		return all
	}
	replies, errs := k.Redis.ReleaseTogether(calls, k.Config.TTL)
	for n, i := range at {
		l, reply, err := &held[i].Lease, queue.Done, errs[n]
		if err == nil {
			reply, err = read(i, replies[n].Cmd)
		}
		all[i].Sent, all[i].Failed = true, err
		if err == nil {
			reply = held[i].released(before[i] == nil, reply)
		}
		k.Life.Remove(l)
		l.endLocked(given(before[i], reply, err))
		all[i].Lock = l.err
	}
	return all
}
