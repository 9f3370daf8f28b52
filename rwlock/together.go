package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

func init() {
	locker.TogetherOf = func(locks any) locker.Together { return together{locks.(*Locker)} }
}

// together is a Locker for the updates of a Guard.
type together struct{ *Locker }

// Awaited reports whether somebody in this process waits for the lock.
func (t together) Awaited(name string) bool { return t.writers.Present(name) }

// TryLock takes all of the locks, or none.
func (t together) TryLock(ctx context.Context, names []string, b locker.Beside) ([]locker.Held, error) {
	for _, name := range names {
		if err := lockErrors.Name(name, lifecycle.LongestName); err != nil {
			return nil, err
		}
	}
	if err := t.begin(names[0]); err != nil {
		return nil, err
	}
	defer t.life.Done()
	if ctx.Err() != nil {
		return nil, lockErrors.Refused(ctx, names[0], nil)
	}
	claims, bases := make([]*claim, len(names)), make([]*locker.Claim, len(names))
	for i, name := range names {
		claims[i] = t.newClaim(name, writing)
		claims[i].Undo = func(release script.Call) script.Call { return b.Undo(i, release) }
		bases[i] = &claims[i].Claim
	}
	grants, err := locker.TryTogether(ctx, t.base, bases, b.Take, ErrNotAcquired)
	if err != nil {
		return nil, lockErrors.Refused(ctx, names[0], err)
	}
	held, late := make([]locker.Held, len(names)), error(nil)
	for i, c := range claims {
		l := c.newLease(ctx, grants[i])
		held[i] = heldLease{l}
		if l.Context().Err() != nil {
			late = lockErrors.TooLate(l.Context(), c.name)
		}
	}
	if late != nil {
		t.Unlock(held, b.Undo, func(_ int, reply *script.Reply) (int, error) { return queue.Done, reply.Err() })
		return nil, late
	}
	return held, nil
}

// heldLease is a Lease as the update sees it.
type heldLease struct{ *Lease }

// Within returns a context that ends with ctx and with the lease, and has the fence.
func (h heldLease) Within(ctx context.Context) (context.Context, func()) {
	return h.hold.Within(locker.WithFence(ctx, h.Lease))
}

// Unlock gives up the locks.
func (t together) Unlock(
	held []locker.Held, give func(i int, release script.Call) script.Call, read func(i int, reply *script.Reply) (int, error),
) []locker.Unlocked {
	all := make([]locker.Unlocked, len(held))
	var leases []*Lease
	var calls []script.Call
	var trusted []bool
	var at []int
	counted := t.life.Enter() // else Close has aborted all leases
	for i, h := range held {
		l := h.(heldLease).Lease
		l.ending.Lock()
		defer l.ending.Unlock()
		switch {
		case l.ended:
			all[i].Lock = l.err
		case !counted:
			l.endLocked(l.wrap("unlock", context.Cause(l.Context())))
			all[i].Lock = l.err
		default:
			release, was := l.claim.End(&l.hold, l.Fence())
			leases, calls, trusted, at = append(leases, l), append(calls, give(i, release)), append(trusted, was), append(at, i)
		}
	}
	if !counted {
		return all
	}
	defer t.life.Leave()
	if len(calls) == 0 {
		return all
	}
	replies, errs := t.base.Redis.ReleaseTogether(calls, t.base.Config.TTL)
	for n, l := range leases {
		one, err := &all[at[n]], errs[n]
		reply := queue.Done
		if err == nil {
			reply, err = read(at[n], replies[n].Cmd)
		}
		one.Sent, one.Failed = true, err
		if err == nil {
			if reply = locker.Released(&l.hold, trusted[n], reply); reply != queue.Done {
				err = locker.Lost(reply)
			}
		}
		t.life.Remove(l)
		l.endLocked(l.wrap("unlock", err))
		one.Lock = l.err
	}
	return all
}
