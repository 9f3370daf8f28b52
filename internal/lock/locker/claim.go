package locker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Queued is a claim to a lock whose holders and waiters have leases of their own.
type Queued struct {
	queue.Calls

	Lease   Lease
	As      any          // how it asks, as an argument of its script
	Watched string       // what messages for it are about
	Doors   *queue.Doors // where it waits before it queues; nil: it need not

	undo func(release script.Call) script.Call // makes of the call that releases the one that Abandon sends; nil: it is that

	guest  queue.Guest
	trail  send.Trail   // of its requests
	ticket atomic.Int64 // of its place in the queue, as far as it knows
	dead   time.Time    // when Redis takes it out of the queue as it does not wait for longer; zero: never
}

// Begin makes the claim one to the lock of the name. The caller sets the other fields.
func (c *Queued) Begin(of *Locker, as Claim, name string) {
	c.Lease.Locker, c.Lease.Claim, c.Lease.Name, c.Lease.Token = of, as, name, keys.NewToken(of.Config.Instance)
}

// Wait waits until the claim is granted, or abandons it. The context's error says why it was not granted; another one
// is Redis'.
func (c *Queued) Wait(ctx context.Context) (queue.Grant, error) {
	k := c.Lease.Locker
	if c.Doors != nil {
		if err := c.guest.Enter(ctx, k.Life.Ending, c.Doors, c.Lease.Name); err != nil {
			return queue.Grant{}, err
		}
		defer c.guest.Leave()
	}
	g, err := k.Wait(ctx, queue.Waiter{ID: c.Watched, Claim: c, Keeper: k.Keeper, Heart: c})
	if err != nil {
		c.Abandon()
		return g, err
	}
	c.guest.Granted()
	return g, nil
}

// Try asks once, without a place in the queue.
func (c *Queued) Try(ctx context.Context) (queue.Grant, error) { return c.tried(c.ask(ctx, 0, "")) }

// tried is the end of a claim that asks once. One that is refused has nothing to abandon, unless a copy of its request
// may come later.
func (c *Queued) tried(answer queue.Answer, err error) (queue.Grant, error) {
	if err != nil || !answer.Granted && c.trail.Lost() {
		c.Abandon()
	}
	if err == nil && !answer.Granted {
		err = lifecycle.ErrNotAcquired
	}
	return queue.Grant{Fence: answer.Fence, Sent: answer.Sent, Length: answer.Length}, err
}

// Ask asks for the lock, as package queue has it.
func (c *Queued) Ask(ctx context.Context, inbox string) (queue.Answer, error) {
	return c.ask(ctx, queue.Grace(c.ttl()), inbox)
}

// Beat is the heartbeat of a place in the queue.
func (c *Queued) Beat() script.Call {
	return c.Beating(c.Lease.Token, c.ticket.Load(), queue.Grace(c.ttl()))
}

// ask asks Redis once. If its caller has left, Abandon gives back what it got.
func (c *Queued) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	return c.read(c.Lease.Locker.Redis.Ask(ctx, c.asking(ctx, grace, inbox), &c.trail))
}

func (c *Queued) asking(ctx context.Context, grace time.Duration, inbox string) script.Call {
	patience := queue.PatienceOf(ctx, c.Lease.Locker.Redis.RoundTrip(c.Keys[0]))
	c.dead = queue.Ends(patience)
	return c.Asking(c.Lease.Token, c.As, c.ttl(), grace, patience, inbox, c.guest.Arrived())
}

// read reads the reply to that call.
func (c *Queued) read(reply send.Reply, err error) (queue.Answer, error) {
	if err != nil {
		return queue.Answer{}, err
	}
	got, err := queue.ParseAsked(reply.Cmd)
	c.ticket.Store(got.Ticket)
	c.guest.Answered(reply.Sent, got.Clock)
	return queue.Answer{
		Granted: got.Status == "held", Sent: reply.Sent, Fence: got.Fence, Length: c.ttl(), Left: got.Left,
	}, err
}

func (c *Queued) ttl() time.Duration { return c.Lease.Locker.Config.TTL }

// Parse reads a grant that came by message. Not granted: it may be of others, or of an older place.
func (c *Queued) Parse(body string) (fence int64, granted bool) {
	if !c.dead.IsZero() && time.Now().After(c.dead) {
		return 0, false
	}
	return queue.ParseGrant(body, c.ticket.Load())
}

// Renewal is the call that renews the lease.
func (c *Queued) Renewal() script.Call { return c.RenewalAt(1) }

// RenewalAt renews a lease that the key with this index has.
func (c *Queued) RenewalAt(key int) script.Call {
	call, alone := c.Renewing(c.Lease.Token, c.ttl(), c.Lease.Fence()), c.RenewingAlone(key, c.Lease.Token, c.ttl())
	call.Alone = &alone
	return call
}

// Extend renews the lease at once.
func (c *Queued) Extend(ctx context.Context) (reply int, sent time.Time, err error) {
	return c.Lease.Locker.Renew(ctx, c.Lease.Claim.Renewal())
}

// Lost need not do anything: the lease ends in Redis.
func (c *Queued) Lost() {}

// Abandon gives up in the background what the claim may have in Redis. Only what the life counts may do so.
func (c *Queued) Abandon() {
	c.Lease.Locker.Redis.Leave(&c.trail, func(lost bool) script.Call {
		release := c.Releasing(c.Lease.Token, 0, lost)
		if c.undo != nil {
			release = c.undo(release)
		}
		return release
	}, c.ttl())
}

// GiveUp gives up in Redis what the claim has.
func (c *Queued) GiveUp(trusted bool) (reply int, err error) {
	answer, err := c.Lease.Locker.Redis.Release(c.release(), c.ttl())
	if err != nil {
		return 0, err
	}
	reply, err = answer.Int()
	return c.released(trusted, reply), err
}

func (c *Queued) release() script.Call {
	return c.Releasing(c.Lease.Token, c.Lease.Fence(), c.trail.Lost())
}

// released reads the reply to that call: queue.Done, or why there was nothing to give up.
func (c *Queued) released(trusted bool, reply int) int {
	if reply == queue.Lost && trusted && time.Now().Before(c.Lease.TrustedUntil()) {
		return queue.Done // nothing is found before the lease can have ended: this is the second copy of a release that found it
	}
	return reply
}
