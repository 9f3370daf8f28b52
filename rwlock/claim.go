package rwlock

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/keys"
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

	ticket int64       // of its place in the queue, as far as it knows; belongs to the goroutine of wait
	left   atomic.Bool // it gave up: what comes now is to be given back
}

func (k *Locker) newClaim(name string, m mode) *claim {
	return &claim{
		Locker: k, lock: lockAt(protocol, keys.Tagged(k.cfg.Prefix, name)), name: name, mode: m, token: rand.Text(),
	}
}

// wait asks Redis for the lock until it has it. The context's error says why it did not get it; another one is Redis'.
func (c *claim) wait(ctx context.Context) (queue.Grant, error) {
	g := grace(c.cfg.TTL)
	waiter := queue.Waiter{
		Inbox: c.inbox, ID: c.inboxKey(c.mode, c.token), Grace: g, Patience: c.cfg.TTL, Ended: c.life.Ending,
		Keeper: c.keeper, Beat: func() script.Call { return c.beat(c.token, c.ticket, g) },
		Ask:   func(ctx context.Context, inbox string) (queue.Answer, error) { return c.ask(ctx, g, inbox) },
		Parse: func(body string) (fence int64, ok bool) { return parseGrant(body, c.ticket) },
	}
	for {
		g, err := waiter.Wait(ctx)
		if err != nil || !g.Short || c.cfg.Watchdog != off {
			return g, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// ask asks Redis for the lock once. The reply to a request that was given up may come when there is a lease, or a wait
// that goes on; only if there is neither, what was granted is given back.
func (c *claim) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	call := c.askFor(c.mode, c.token, c.cfg.TTL, grace, inbox)
	got, err := detach.Do(ctx, &c.life.Tasks, c.cfg.RedisTimeout, func(ctx context.Context) (asked, error) {
		return parseAsked(call.Run(ctx, c.rdb))
	}, func(asked, error) {
		if c.left.Load() {
			c.release()
		}
	})
	c.ticket = got.ticket
	return queue.Answer{Granted: got.status == "held", Fence: got.fence, Length: c.cfg.TTL, Left: got.left}, err
}

// abandon gives up in the background. Only calls that have begun may do so.
func (c *claim) abandon() {
	c.left.Store(true)
	c.life.Tasks.Go(c.release) // owner: the Locker; stop: RedisTimeout and the client's time-outs; joined by Close
}

// release gives back what the claim may have in Redis, whatever became of its context.
func (c *claim) release() {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.RedisTimeout)
	defer cancel()
	call := c.giveUp(c.token, 0)
	_ = call.Run(ctx, c.rdb).Err() // if this fails too, the lease or the place expires
}

// run runs a call that returns a number, until the context ends or RedisTimeout is over.
func (c *claim) run(ctx context.Context, call script.Call) (reply int64, sent time.Time, err error) {
	sent = time.Now()
	reply, err = detach.Do(ctx, &c.life.Tasks, c.cfg.RedisTimeout, func(ctx context.Context) (int64, error) {
		return call.Run(ctx, c.rdb).Int64()
	}, nil)
	return reply, sent, err
}
