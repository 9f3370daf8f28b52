package mutex

import (
	"context"
	_ "embed"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

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
	lockScript    = script.New(lockFree + prelude + lockSource)
	unlockScript  = script.New(unlockLone + prelude + unlockSource)
	renewScript   = script.New(prelude + renewSource)
	revokeScript  = script.New(prelude + revokeSource)
	inspectScript = script.New(prelude + inspectSource)
)

// What scripts say of a hold.
const (
	replyLost    = 0
	replyKept    = 1
	replyRevoked = -1
)

// who is a hold, or will be one.
type who struct {
	keys  []string     // of the lock in Redis: its hash, and its queue
	id    string       // of this hold alone
	token string       // of its owner, or the id
	left  *atomic.Bool // it gave up: what it asked for is to be given back when it comes
}

func lockKey(prefix, name string) string { return keys.Tagged(prefix, name) }

func keysOf(lock string) []string { return []string{lock, lock + ":queue"} }

// ask asks for the lock. grace 0: do not queue for it.
func (w who) ask(ctx context.Context, rdb script.Processor, ttl, grace time.Duration, inbox string) (queue.Answer, error) {
	call := w.asking(ttl, grace, inbox)
	return parseAnswer(call.Run(ctx, rdb), ttl)
}

func (w who) asking(ttl, grace time.Duration, inbox string) script.Call {
	args := make([]any, 0, 5)
	args = append(args, w.id, script.Millis(ttl), script.Millis(grace), inbox)
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
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("unexpected reply %v", reply)
	}
	if err != nil {
		return queue.Answer{}, err
	}
	left := time.Duration(reply[1]) * time.Millisecond
	return queue.Answer{Granted: reply[0] == 1, Fence: reply[2], Length: left, Left: left}, nil
}

// heir is who gets the lock next, in the same process.
type heir struct {
	id    string // empty: nobody
	inbox string
	ttl   time.Duration
	first bool // before those in the queue
}

// release gives up a hold, or a place in the queue. It returns what has become of the hold, or the heir's fence.
func (w who) release(ctx context.Context, rdb script.Processor, h heir) (int64, error) {
	call := w.releasing(h)
	return call.Run(ctx, rdb).Int64()
}

func (w who) releasing(h heir) script.Call {
	args := make([]any, 0, 6)
	args = append(args, w.id)
	if w.owned() || h.id != "" {
		args = append(args, w.token)
	}
	if h.id != "" {
		args = append(args, h.id, script.Millis(h.ttl), h.inbox, h.first)
	}
	return script.Call{Script: unlockScript, Keys: w.keys, Args: args}
}

// giveUp gives back what a holder or waiter may have in Redis, whatever became of the context.
func (w who) giveUp(rdb script.Processor, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, _ = w.release(ctx, rdb, heir{}) // if this fails too, the lease expires
}

// renewal is the call that extends the lease, and raises its fence to a least one.
func (w who) renewal(ttl time.Duration, fence int64) script.Call {
	return script.Call{Script: renewScript, Keys: w.keys[:1], Args: []any{w.id, w.token, script.Millis(ttl), fence}}
}

// revoke takes the lock away from whoever holds it, tells its locker under the key tell, and reports whether there was one.
func revoke(ctx context.Context, rdb script.Processor, key, tell string) (bool, error) {
	call := revoking(key, tell)
	return call.Run(ctx, rdb).Bool()
}

func revoking(key, tell string) script.Call {
	return script.Call{Script: revokeScript, Keys: keysOf(key), Args: []any{tell}}
}

// inspect looks at a lock.
func inspect(ctx context.Context, rdb script.Processor, key string) (Info, error) {
	call := script.Call{Script: inspectScript, Keys: keysOf(key)}
	reply, err := call.Run(ctx, rdb).Slice()
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
