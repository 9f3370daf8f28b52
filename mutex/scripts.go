package mutex

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

// parkedMark is what the token of a lock has, behind the id that parked it: see park.lua.
const parkedMark = "+"

//go:embed lua/*.lua
var files embed.FS

var (
	lockScript    = script.Compile(files, "fields", "lock_free", "prelude", "lock")
	unlockScript  = script.Compile(files, "fields", "unlock_lone", "prelude", "unlock")
	parkScript    = script.Compile(files, "fields", "prelude", "park")
	renewScript   = script.Compile(files, "fields", "prelude", "renew")
	revokeScript  = script.Compile(files, "fields", "prelude", "revoke")
	inspectScript = script.Compile(files, "fields", "prelude", "inspect")
)

// lockKey has an ending of its own, so that a Guard's key of the name is another one.
func lockKey(prefix, name string) string { return keys.Tagged(prefix, name) + ":mutex" }

func keysOf(lock string) []string {
	const behind = ":queue"
	both := lock + behind + lock + ":gone" // one string for two
	n := len(lock) + len(behind)
	return []string{lock, both[:n], both[n:]}
}

// asking asks for the lock, and waits for it no longer than patience, in ms or a queue.Patience. grace 0: it does not queue
// for it.
func (c *claim) asking(ttl, grace time.Duration, patience any, inbox string) script.Call {
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
func (c *claim) releasing(next successor, lost bool) script.Call {
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
func (c *claim) renewal(ttl time.Duration, fence int64) script.Call {
	return script.Call{Script: renewScript, Keys: c.keys[:1], Args: []any{c.id, c.token, script.Millis(ttl), fence}}
}

// revoking takes the lock away from its holder, notifies its locker under the key tell, and returns whether there was one.
func revoking(key, tell string) script.Call {
	return script.Call{Script: revokeScript, Keys: keysOf(key), Args: []any{tell}}
}

// inspecting looks at a lock.
func inspecting(key string) script.Call { return script.Call{Script: inspectScript, Keys: keysOf(key)} }

// parseInfo reads the reply of inspect.lua.
func parseInfo(cmd *script.Reply) (Info, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Info{}, err
	}
	number := func(i int) int64 { return script.Number(reply, i) }
	token := script.String(reply, 0)
	return Info{
		Token: token, Instance: keys.InstanceOf(strings.TrimSuffix(token, parkedMark)), Fence: number(1), Left: script.Duration(number(2)),
		Holds: int(number(3)), Waiters: int(number(4)),
	}, nil
}
