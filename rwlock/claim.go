package rwlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

// claim is one caller's way to a lock: its token, and what it has asked for with it.
type claim struct {
	*Locker
	lock
	name  string
	mode  mode
	token string

	trail  link.Trail   // of its requests
	ticket atomic.Int64 // of its place in the queue, as far as it knows
	guest  *queue.Guest // while it queues; nil: it came by no door; belongs to the goroutine of wait, as what follows
	dead   time.Time    // when Redis takes it out of the queue as it does not wait for longer; zero: never
}

func (k *Locker) newClaim(name string, m mode) *claim {
	return &claim{
		Locker: k, lock: lockAt(protocol, keys.Tagged(k.cfg.Prefix, name)), name: name, mode: m, token: k.newToken(),
	}
}

// newToken is a token that no other claim has. It says which instance it is of.
func (k *Locker) newToken() string { return keys.NewToken(k.cfg.Instance) }

// wait waits until the claim has the lock. The context's error says why it did not get it; another one is Redis'.
func (c *claim) wait(ctx context.Context) (queue.Grant, error) {
	if err := c.enter(ctx); err != nil {
		return queue.Grant{}, err
	}
	defer c.guest.Leave()
	got, err := c.queue(ctx)
	if err == nil {
		c.guest.Granted()
	}
	return got, err
}

// enter goes through the lock's door. Readers that are patient need not: each waits for one writer at most, and costs no more for
// leaving than for showing that it lives.
func (c *claim) enter(ctx context.Context) (err error) {
	leaves, given := ctx.Deadline()
	switch {
	case c.mode == writing:
		c.guest, err = c.writers.Enter(ctx, c.life.Ending, c.name)
	case given && time.Until(leaves) < queue.Grace(c.cfg.TTL)/3:
		c.guest, err = c.readers.Enter(ctx, c.life.Ending, c.name)
	}
	return err
}

// queue waits for the lock in Redis.
func (c *claim) queue(ctx context.Context) (queue.Grant, error) {
	waiter := queue.Waiter{
		Inbox: c.inbox, ID: c.inboxKey(c.mode, c.token), Grace: queue.Grace(c.cfg.TTL), Patience: c.cfg.TTL, Ended: c.life.Ending,
		Claim: c, Keeper: c.keeper, Heart: c,
	}
	for {
		g, err := waiter.Wait(ctx)
		if err != nil || !g.Short || c.cfg.Watchdog != off {
			return g, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// Ask asks for the lock, as package queue has it.
func (c *claim) Ask(ctx context.Context, inbox string) (queue.Answer, error) {
	return c.ask(ctx, queue.Grace(c.cfg.TTL), inbox)
}

// Beat is the heartbeat of a place in the queue, likewise.
func (c *claim) Beat() script.Call { return c.beat(c.token, c.ticket.Load(), queue.Grace(c.cfg.TTL)) }

// ask asks Redis for the lock once. What it was not asked for any more is given back by abandon.
func (c *claim) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	patience := queue.PatienceOf(ctx, c.redis.RoundTrip(c.keys[0]))
	c.dead = queue.Ends(patience)
	reply, err := c.redis.Ask(ctx, c.askFor(c.mode, c.token, c.cfg.TTL, grace, patience, inbox, c.guest.Arrived()), &c.trail)
	if err != nil {
		return queue.Answer{}, err
	}
	got, err := queue.ParseAsked(reply.Cmd)
	c.ticket.Store(got.Ticket)
	c.guest.Answered(reply.Sent, got.Clock)
	return queue.Answer{
		Granted: got.Status == "held", Sent: reply.Sent, Fence: got.Fence, Length: c.cfg.TTL, Left: got.Left,
	}, err
}

// Parse reads a grant that came by message. Not granted: it may be of others.
func (c *claim) Parse(body string) (fence int64, granted bool) {
	if !c.dead.IsZero() && time.Now().After(c.dead) {
		return 0, false
	}
	return queue.ParseGrant(body, c.ticket.Load())
}

// abandon gives up in the background what the claim may have in Redis. Only what the life counts may do so.
func (c *claim) abandon() {
	c.redis.Leave(&c.trail, func(lost bool) script.Call { return c.giveUp(c.token, 0, lost) }, c.cfg.TTL)
}

// run runs a call that returns a number, until the context ends or RedisTimeout is over.
func (c *claim) run(ctx context.Context, call script.Call) (reply int64, sent time.Time, err error) {
	answer, err := c.redis.Ask(ctx, call, nil)
	if err != nil {
		return 0, sent, err
	}
	reply, err = answer.Int64()
	return reply, answer.Sent, err
}
