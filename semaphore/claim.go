package semaphore

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

// claim is one caller's way to a permit: its token, and what it has asked for with it.
type claim struct {
	*Locker
	sem
	name  string
	token string

	trail  link.Trail   // of its requests
	ticket atomic.Int64 // of its place in the queue, as far as it knows
	guest  *queue.Guest // while it queues; belongs to the goroutine of wait, as what follows
	dead   time.Time    // when Redis takes it out of the queue as it does not wait for longer; zero: never
}

func (k *Locker) newClaim(name string) *claim {
	token := rand.Text()
	if k.cfg.Instance != "" {
		token += "@" + k.cfg.Instance
	}
	return &claim{Locker: k, sem: semAt(protocol, keys.Tagged(k.cfg.Prefix, name)), name: name, token: token}
}

// wait waits until the claim has a permit. The context's error says why it did not get one; another error is Redis'.
func (c *claim) wait(ctx context.Context) (got queue.Grant, err error) {
	if c.guest, err = c.doors.Enter(ctx, c.life.Ending, c.name); err != nil {
		return got, err
	}
	defer c.guest.Leave()
	waiter := queue.Waiter{
		Inbox: c.inbox, ID: c.inboxKey(c.token), Grace: queue.Grace(c.cfg.TTL), Patience: c.cfg.TTL, Ended: c.life.Ending,
		Claim: c, Keeper: c.keeper, Heart: c,
	}
	for {
		got, err = waiter.Wait(ctx)
		if err != nil || !got.Short || c.cfg.Watchdog != off {
			return got, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// Ask asks for a permit, as package queue has it.
func (c *claim) Ask(ctx context.Context, inbox string) (queue.Answer, error) {
	return c.ask(ctx, queue.Grace(c.cfg.TTL), inbox)
}

// Beat is the heartbeat of a place in the queue, likewise.
func (c *claim) Beat() script.Call { return c.beat(c.token, c.ticket.Load(), queue.Grace(c.cfg.TTL)) }

// ask asks Redis once. What it was not asked for any more is given back by abandon.
func (c *claim) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	patience := queue.PatienceOf(ctx, c.redis.RoundTrip(c.keys[0]))
	c.dead = queue.Ends(patience)
	call := c.askFor(c.token, c.cfg.Permits, c.cfg.TTL, grace, patience, inbox, c.guest.Arrived())
	reply, err := c.redis.Ask(ctx, call, &c.trail)
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

// Parse reads a grant that came by message. Not granted: it may be of an older place.
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
