package mutex

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

var (
	lockScript    = script.New(text("fields", "lock_free") + whole("lock"))
	unlockScript  = script.New(text("fields", "unlock_lone") + whole("unlock"))
	parkScript    = script.New(text("fields") + whole("park"))
	renewScript   = script.New(text("fields") + whole("renew"))
	revokeScript  = script.New(text("fields") + whole("revoke"))
	inspectScript = script.New(text("fields") + whole("inspect"))
)

func text(names ...string) string { return script.Text(files, names...) }

// whole is a script behind its fields, without a common case.
func whole(name string) string { return text("prelude") + queue.Settled(text(name)) }

// ending ends the key of a lock, so that it is not a Guard's key of the name.
const ending = ":mutex"

func lockKey(prefix, name string) string { return keys.Tagged(prefix, name) + ending }

func keysOf(lock string) []string {
	const behind = ":queue"
	both := lock + behind + lock + ":gone" // one string for two
	n := len(lock) + len(behind)
	return []string{lock, both[:n], both[n:]}
}

// calls makes the calls of one who asks for a lock, or has it.
type calls struct {
	keys    []string // of the lock in Redis: its hash, its queue, and the ids that are gone
	id      string   // of this hold alone
	token   string   // of its owner, or the id
	arrived int64    // in µs by the server's clock; 0: when it first asks
}

func newCalls(ctx context.Context, key, instance string) calls {
	c := calls{keys: keysOf(key), id: keys.NewToken(instance)}
	c.token = c.id
	if owner, ok := ctx.Value(ownerKey{}).(string); ok {
		c.token = owner
	}
	return c
}

// owned reports whether the token belongs to an owner.
func (c *calls) owned() bool { return c.token != c.id }

// asking asks for the lock, and waits for it no longer than patience, in ms or a queue.Patience. grace 0: it does not queue
// for it.
func (c *calls) asking(ttl, grace time.Duration, patience any, inbox string) script.Call {
	args := make([]any, 0, 7)
	args = append(args, c.id, script.Millis(ttl), script.Millis(grace), patience, inbox, c.arrived)
	if c.owned() {
		args = append(args, c.token)
	}
	return script.Call{Script: lockScript, Keys: c.keys, Args: args}
}

// parseAnswer reads the reply of lock.lua to a claim that asked for a lease of ttl.
func parseAnswer(cmd *script.Reply, ttl time.Duration) (queue.Answer, error) {
	if fence, ok := cmd.Val().(int64); ok {
		return queue.Answer{Granted: true, Fence: fence, Length: ttl}, nil
	}
	reply, err := cmd.Int64Slice()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("unexpected reply %v", reply)
	}
	if err != nil {
		return queue.Answer{}, err
	}
	left := script.Duration(reply[1])
	return queue.Answer{Granted: reply[0] == 1, Fence: reply[2], Length: left, Left: left, Clock: reply[3]}, nil
}

// successor is who gets the lock next, in the same process.
type successor struct {
	id    string // empty: nobody
	inbox string
	ttl   time.Duration
	first bool // before those in the queue
}

// releasing gives up a hold, or a place in the queue. It returns the state of the hold, or the successor's
// fence. If lost, some request of the claim may still arrive later.
func (c *calls) releasing(next successor, lost bool) script.Call {
	args := make([]any, 0, 7)
	args = append(args, c.id)
	if c.owned() || lost || next.id != "" {
		args = append(args, c.token, lost)
	}
	if next.id != "" {
		args = append(args, next.id, script.Millis(next.ttl), next.inbox, next.first)
	}
	return script.Call{Script: unlockScript, Keys: c.keys, Args: args}
}

// renewal is the call that extends the lease, and raises its fence to a least one.
func (c *calls) renewal(ttl time.Duration, fence int64) script.Call {
	return script.Call{Script: renewScript, Keys: c.keys[:1], Args: []any{c.id, c.token, script.Millis(ttl), fence}}
}

// parking gives the lock up so that it stays held for a while.
func (c *calls) parking(rest time.Duration, lost bool) script.Call {
	return script.Call{Script: parkScript, Keys: c.keys, Args: []any{c.id, script.Millis(rest), lost}}
}

// revoking takes the lock away from its holder, notifies its locker under the key tell, and returns whether there was one.
func revoking(key, tell string) script.Call {
	return script.Call{Script: revokeScript, Keys: keysOf(key), Args: []any{tell}}
}

// inspecting looks at a lock.
func inspecting(key string) script.Call { return script.Call{Script: inspectScript, Keys: keysOf(key)} }

// parseGrant reads the fence of a grant. Not granted: it is no later than the last answer, whose fence is given.
func parseGrant(body string, answered int64) (fence int64, granted bool) {
	fence, err := strconv.ParseInt(body, 10, 64)
	return fence, err == nil && fence > answered
}
