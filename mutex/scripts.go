package mutex

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

//go:embed lua/fields.lua
var fields string

//go:embed lua/prelude.lua
var prelude string

//go:embed lua/lock.lua
var lockSource string

//go:embed lua/lock_free.lua
var lockFree string

//go:embed lua/unlock_lone.lua
var unlockLone string

//go:embed lua/unlock.lua
var unlockSource string

//go:embed lua/renew.lua
var renewSource string

//go:embed lua/revoke.lua
var revokeSource string

//go:embed lua/inspect.lua
var inspectSource string

var (
	lockScript    = script.New(fields + lockFree + prelude + lockSource)
	unlockScript  = script.New(fields + unlockLone + prelude + unlockSource)
	renewScript   = script.New(fields + prelude + renewSource)
	revokeScript  = script.New(fields + prelude + revokeSource)
	inspectScript = script.New(fields + prelude + inspectSource)
)

// What scripts say of a hold.
const (
	replyLost    = 0
	replyKept    = 1
	replyRevoked = -1
)

// who is a hold, or will be one.
type who struct {
	keys  []string    // of the lock in Redis: its hash, its queue, and who is gone
	id    string      // of this hold alone
	token string      // of its owner, or the id
	trail *link.Trail // of its requests

	arrived int64 // in µs by the server's clock; 0: when it first asks
}

func lockKey(prefix, name string) string { return keys.Tagged(prefix, name) }

func keysOf(lock string) []string { return []string{lock, lock + ":queue", lock + ":gone"} }

// asking asks for the lock, and waits for it no longer than patience, in ms or a queue.Patience. grace 0: it does not queue
// for it.
func (w who) asking(ttl, grace time.Duration, patience any, inbox string) script.Call {
	args := make([]any, 0, 7)
	args = append(args, w.id, script.Millis(ttl), script.Millis(grace), patience, inbox, w.arrived)
	if w.owned() {
		args = append(args, w.token)
	}
	return script.Call{Script: lockScript, Keys: w.keys, Args: args}
}

// parseAnswer reads the reply of lock.lua to who asked for a lease of ttl.
func parseAnswer(cmd *redis.Cmd, ttl time.Duration) (queue.Answer, error) {
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
	left := time.Duration(reply[1]) * time.Millisecond
	return queue.Answer{Granted: reply[0] == 1, Fence: reply[2], Length: left, Left: left, Clock: reply[3]}, nil
}

// heir is who gets the lock next, in the same process.
type heir struct {
	id    string // empty: nobody
	inbox string
	ttl   time.Duration
	first bool // before those in the queue
}

// releasing gives up a hold, or a place in the queue. It returns what has become of the hold, or the heir's fence. lost: some
// request of w may come later.
func (w who) releasing(h heir, lost bool) script.Call {
	args := make([]any, 0, 7)
	args = append(args, w.id)
	if w.owned() || lost || h.id != "" {
		args = append(args, w.token, lost)
	}
	if h.id != "" {
		args = append(args, h.id, script.Millis(h.ttl), h.inbox, h.first)
	}
	return script.Call{Script: unlockScript, Keys: w.keys, Args: args}
}

// renewal is the call that extends the lease, and raises its fence to a least one.
func (w who) renewal(ttl time.Duration, fence int64) script.Call {
	return script.Call{Script: renewScript, Keys: w.keys[:1], Args: []any{w.id, w.token, script.Millis(ttl), fence}}
}

// revoking takes the lock away from whoever holds it, tells its locker under the key tell, and returns whether there was one.
func revoking(key, tell string) script.Call {
	return script.Call{Script: revokeScript, Keys: keysOf(key), Args: []any{tell}}
}

// inspecting looks at a lock.
func inspecting(key string) script.Call { return script.Call{Script: inspectScript, Keys: keysOf(key)} }

// parseInfo reads the reply of inspect.lua.
func parseInfo(cmd *redis.Cmd) (Info, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Info{}, err
	}
	number := func(i int) int64 {
		if i >= len(reply) {
			return 0
		}
		n, _ := reply[i].(int64)
		return n
	}
	token := ""
	if len(reply) > 0 {
		token, _ = reply[0].(string)
	}
	return Info{
		Token: token, Fence: number(1), Left: time.Duration(number(2)) * time.Millisecond,
		Holds: int(number(3)), Waiters: int(number(4)),
	}, nil
}
