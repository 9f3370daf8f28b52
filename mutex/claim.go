package mutex

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/script"
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

// claim is one call's way to a lock: a hold, or what will be one.
type claim struct {
	*Locker // nil: it is a Quorum's, or a test's

	name  string
	keys  []string   // of the lock in Redis: its hash, its queue, and the ids that are gone
	id    string     // of this hold alone
	token string     // of its owner, or the id
	trail link.Trail // of its calls

	guest    *queue.Guest // while it queues; nil: it came by no door; belongs to the goroutine that waits, like the fields below
	arrived  int64        // in µs by the server's clock; 0: when it first asks
	answered int64        // the fence of the last answer
}

func newClaim(ctx context.Context, key, instance string) *claim {
	c := &claim{keys: keysOf(key), id: keys.NewToken(instance)}
	c.token = c.id
	if owner, ok := ctx.Value(ownerKey{}).(string); ok {
		c.token = owner
	}
	return c
}

// owned reports whether the token belongs to an owner.
func (c *claim) owned() bool { return c.token != c.id }

// wait asks Redis for the lock until it has it. If the context ends, it returns the context's error; any other error
// comes from Redis.
func (c *claim) wait(ctx context.Context) (queue.Grant, error) {
	return c.base.Wait(ctx, queue.Waiter{ID: c.id, Claim: c})
}

// Ask asks for the lock, as package queue has it.
func (c *claim) Ask(ctx context.Context, inbox string) (queue.Answer, error) {
	answer, err := c.ask(ctx, queue.Grace(c.base.Config.TTL), inbox)
	if err == nil {
		c.answered = answer.Fence
		c.guest.Answered(answer.Sent, answer.Clock)
	}
	return answer, err
}

// Parse reads a grant that came by message.
func (c *claim) Parse(body string) (fence int64, granted bool) { return parseGrant(body, c.answered) }

// ask asks Redis for the lock once. If the lock is not wanted any more, abandon gives it back.
func (c *claim) ask(ctx context.Context, grace time.Duration, inbox string) (queue.Answer, error) {
	patience := queue.PatienceOf(ctx, c.base.Redis.RoundTrip(c.keys[0]))
	reply, err := c.base.Redis.Ask(ctx, c.asking(c.base.Config.TTL, grace, patience, inbox), &c.trail)
	if err != nil {
		return queue.Answer{}, err
	}
	answer, err := parseAnswer(reply.Cmd, c.base.Config.TTL)
	answer.Sent = reply.Sent
	return answer, err
}

// abandon releases in the background whatever the claim may have in Redis. Only calls that the life counts
// may use it.
func (c *claim) abandon() {
	c.base.Redis.Leave(&c.trail, func(lost bool) script.Call { return c.releasing(successor{}, lost) }, c.base.Config.TTL)
}
