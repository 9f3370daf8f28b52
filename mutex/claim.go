package mutex

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/config"
)

type ownerKey struct{}

// WithOwner returns a context that makes locks re-entrant: a Lock with it, or with a context derived from it, may take a lock again that
// its owner holds, and the lock is free when it was unlocked as often. All leases of an owner have the same token and fence. A second
// Lock does not extend the first lease. An owner stands for one line of work; two goroutines that use it at the same time both get the
// lock. Its token says which process called WithOwner, by host:pid.
//
// Without an owner, a second Lock waits for the first lease to end, as with sync.Mutex.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, keys.NewToken(config.DefaultInstance()))
}

// claim is one call's way to a lock of a Locker.
type claim struct {
	calls

	lease locker.Lease
	of    *Locker
	trail send.Trail // of its calls

	guest    queue.Guest  // while it queues; of a lock that is not fair, as long as it holds it, too
	answered int64        // the fence of the last answer; belongs to the goroutine that waits
	since    time.Time    // when it was acquired, or a little later
	least    atomic.Int64 // how long the lock stays held from then on, at least; a time.Duration
}

func (k *Locker) newClaim(ctx context.Context, name string) *claim {
	k.start()
	c := &claim{of: k, calls: newCalls(ctx, lockKey(k.base.Config.Prefix, name), k.base.Config.Instance)}
	c.lease.Locker, c.lease.Claim, c.lease.Name, c.lease.Token = k.base, c, name, c.token
	c.guest.Claim = c
	return c
}

// lock waits for the lock.
func lock(ctx context.Context, name string, k *Locker) (*locker.Lease, queue.Grant, error) {
	c := k.newClaim(ctx, name)
	g, err := c.wait(ctx)
	if err != nil {
		c.Abandon()
	}
	return c.granted(g, err)
}

// wait waits for this caller's turn among those of the process, and then for the lock in Redis, unless it has been handed that. Owners wait for
// no turn: they may hold the very lock that the others wait for.
func (c *claim) wait(ctx context.Context) (queue.Grant, error) {
	if !c.owned() {
		if err := c.guest.Enter(ctx, c.of.base.Life.Ending, &c.of.doors, c.lease.Name); err != nil {
			return queue.Grant{}, err
		}
		if lock := c.guest.Handed(); lock != nil {
			return *lock, nil
		}
		c.arrived = c.guest.Arrived()
	}
	g, err := c.of.base.Wait(ctx, queue.Waiter{ID: c.id, Claim: c})
	if c.of.fair || err != nil {
		c.guest.Leave()
	}
	return g, err
}

// try asks for the lock once.
func try(ctx context.Context, name string, k *Locker) (*locker.Lease, queue.Grant, error) {
	c := k.newClaim(ctx, name)
	if !k.fair && !c.owned() {
		c.guest.EnterFirst(&k.doors, name)
	}
	answer, err := c.ask(ctx, 0, k.base.Inbox.Address())
	if err != nil || !answer.Granted {
		c.guest.Leave()
		if err != nil || c.trail.Lost() { // a request without an answer may arrive when the lock is free
			c.Abandon()
		}
		if err == nil {
			err = ErrNotAcquired
		}
	}
	return c.granted(queue.Grant{Fence: answer.Fence, Sent: answer.Sent, Length: answer.Length}, err)
}

func (c *claim) granted(g queue.Grant, err error) (*locker.Lease, queue.Grant, error) {
	if err == nil {
		c.guest.Told()
	}
	c.since = time.Now()
	c.least.Store(int64(c.of.minHold))
	return &c.lease, g, err
}

// Ask asks for the lock, as package queue has it.
func (c *claim) Ask(ctx context.Context, inbox string) (queue.Answer, error) {
	answer, err := c.ask(ctx, queue.Grace(c.ttl()), inbox)
	if err == nil {
		c.guest.Told()
		c.answered = answer.Fence
		if c.of.fair {
			c.guest.Answered(answer.Sent, answer.Clock)
		}
	}
	return answer, err
}

// Parse reads a grant that came by message.
func (c *claim) Parse(body string) (fence int64, granted bool) { return parseGrant(body, c.answered) }

// ask asks Redis for the lock once. If the lock is not wanted any more, Abandon gives it back.
func (c *claim) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	redis := c.of.base.Redis
	patience := queue.PatienceOf(ctx, redis.RoundTrip(c.keys[0]))
	reply, err := redis.Ask(ctx, c.asking(c.ttl(), grace, patience, inbox), &c.trail)
	if err != nil {
		return queue.Answer{}, err
	}
	answer, err := parseAnswer(reply.Cmd, c.ttl())
	answer.Sent = reply.Sent
	return answer, err
}

func (c *claim) ttl() time.Duration { return c.of.base.Config.TTL }

// Renewal is the call that extends the lease.
func (c *claim) Renewal() script.Call { return c.renewal(c.ttl(), 0) }

// Extend extends the lease at once.
func (c *claim) Extend(ctx context.Context) (reply int, sent time.Time, err error) {
	return c.of.base.Renew(ctx, c.Renewal())
}

// Lost ends the caller's turn.
func (c *claim) Lost() {
	if !c.of.fair {
		c.guest.Leave()
	}
}

// Abandon releases in the background whatever the claim may have in Redis. Only calls that the life counts
// may use it.
func (c *claim) Abandon() {
	c.of.base.Redis.Leave(&c.trail, func(lost bool) script.Call { return c.releasing(successor{}, lost) }, c.ttl())
}
