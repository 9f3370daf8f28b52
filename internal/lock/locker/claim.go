package locker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/script"
)

// Claim is one caller's way to a lock: its token, and the requests that it has sent with it.
type Claim struct {
	*Base
	queue.Calls

	Token string
	As    any          // how it asks, as an argument of its script
	Guest *queue.Guest // while it queues; nil: it came by no door; belongs to the goroutine that waits, as dead

	// Undo makes of the call that releases the one that Abandon sends; nil: it is that.
	Undo func(release script.Call) script.Call

	trail  link.Trail   // of its requests
	ticket atomic.Int64 // of its place in the queue, as far as it knows
	dead   time.Time    // when Redis takes it out of the queue as it does not wait for longer; zero: never
}

// Wait waits in Redis until the claim is granted, or abandons it. watched is what messages for it are about. The context's error
// says why it was not granted; another one is Redis'.
func (c *Claim) Wait(ctx context.Context, watched string) (queue.Grant, error) {
	g, err := c.Base.Wait(ctx, queue.Waiter{ID: watched, Claim: c, Keeper: c.Keeper, Heart: c})
	if err != nil {
		c.Abandon()
	}
	return g, err
}

// Try asks once, without a place in the queue. One that is refused has nothing to abandon, unless a copy of its request may come
// later.
func (c *Claim) Try(ctx context.Context, refused error) (queue.Grant, error) {
	answer, err := c.ask(ctx, 0, "")
	if err != nil || !answer.Granted && c.trail.Lost() {
		c.Abandon()
	}
	if err == nil && !answer.Granted {
		err = refused
	}
	return queue.Grant{Fence: answer.Fence, Sent: answer.Sent, Length: answer.Length}, err
}

// Ask asks for the lock, as package queue has it.
func (c *Claim) Ask(ctx context.Context, inbox string) (queue.Answer, error) {
	return c.ask(ctx, queue.Grace(c.Config.TTL), inbox)
}

// Beat is the heartbeat of a place in the queue.
func (c *Claim) Beat() script.Call {
	return c.Beating(c.Token, c.ticket.Load(), queue.Grace(c.Config.TTL))
}

// ask asks Redis once. If its caller has left, Abandon gives back what it got.
func (c *Claim) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	patience := queue.PatienceOf(ctx, c.Redis.RoundTrip(c.Keys[0]))
	c.dead = queue.Ends(patience)
	reply, err := c.Redis.Ask(ctx, c.Asking(c.Token, c.As, c.Config.TTL, grace, patience, inbox, c.Guest.Arrived()), &c.trail)
	if err != nil {
		return queue.Answer{}, err
	}
	got, err := queue.ParseAsked(reply.Cmd)
	c.ticket.Store(got.Ticket)
	c.Guest.Answered(reply.Sent, got.Clock)
	return queue.Answer{
		Granted: got.Status == "held", Sent: reply.Sent, Fence: got.Fence, Length: c.Config.TTL, Left: got.Left,
	}, err
}

// Renewal is the call that renews the lease of the fence.
func (c *Claim) Renewal(fence int64) script.Call { return c.Renewing(c.Token, c.Config.TTL, fence) }

// Parse reads a grant that came by message. Not granted: it may be of others, or of an older place.
func (c *Claim) Parse(body string) (fence int64, granted bool) {
	if !c.dead.IsZero() && time.Now().After(c.dead) {
		return 0, false
	}
	return queue.ParseGrant(body, c.ticket.Load())
}

// Abandon gives up in the background what the claim may have in Redis. Only what the life counts may do so.
func (c *Claim) Abandon() {
	c.Redis.Leave(&c.trail, func(lost bool) script.Call {
		release := c.Releasing(c.Token, 0, lost)
		if c.Undo != nil {
			release = c.Undo(release)
		}
		return release
	}, c.Config.TTL)
}

// GiveUp ends a hold, and gives up in Redis what it was of. It returns queue.Done, or why there was nothing to give up.
func (c *Claim) GiveUp(h *hold.Hold, fence int64) (reply int, err error) {
	release, trusted := c.End(h, fence)
	answer, err := c.Redis.Release(release, c.Config.TTL)
	if err != nil {
		return 0, err
	}
	reply, err = answer.Int()
	return Released(h, trusted, reply), err
}

// End ends a hold. It returns the call that gives up in Redis what it was of, and whether it was trusted until now.
func (c *Claim) End(h *hold.Hold, fence int64) (release script.Call, trusted bool) {
	trusted = h.End()
	return c.Releasing(c.Token, fence, c.trail.Lost()), trusted
}

// Released reads the reply to that call: queue.Done, or why there was nothing to give up.
func Released(h *hold.Hold, trusted bool, reply int) int {
	if reply == queue.Lost && trusted && time.Now().Before(h.TrustedUntil()) {
		return queue.Done // nothing is found before the lease can have ended: this is the second copy of a release that found it
	}
	return reply
}
