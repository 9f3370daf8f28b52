package semaphore

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

//go:embed lua/fields.lua
var fields string

//go:embed lua/prelude.lua
var prelude string

//go:embed lua/acquire.lua
var acquireSource string

//go:embed lua/heartbeat.lua
var heartbeatSource string

//go:embed lua/renew.lua
var renewSource string

//go:embed lua/release.lua
var releaseSource string

//go:embed lua/revoke.lua
var revokeSource string

//go:embed lua/inspect.lua
var inspectSource string

// A script's answer about a token that has no permit, when it returns a number, and about one that has.
const (
	replyRevoked = -1
	replyLost    = 0
	replyDone    = 1
)

// scripts are the operations on a semaphore.
type scripts struct {
	acquire, heartbeat, renew, release, revoke, inspect *script.Script
}

// compile makes the scripts; the tests of the protocol edit their sources.
func compile(edit func(source string) string) *scripts {
	s := func(source string) *script.Script {
		return script.New(edit(fields + queue.Prelude() + prelude + source))
	}
	return &scripts{
		acquire: s(acquireSource), heartbeat: s(heartbeatSource), renew: s(renewSource), release: s(releaseSource),
		revoke: s(revokeSource), inspect: s(inspectSource),
	}
}

var protocol = compile(func(source string) string { return source })

// sem makes the calls that concern one semaphore.
type sem struct {
	*scripts
	keys []string
}

// semAt returns the semaphore whose keys begin with base, which has the hash tag.
func semAt(s *scripts, base string) sem {
	main := base + ":sem"
	return sem{s, []string{main, main + ":holders", main + ":queue", main + ":alive", main + ":gone"}}
}

// inboxKey is what messages for a waiter are about.
func (s sem) inboxKey(token string) string { return s.keys[0] + ":" + token }

func (s sem) call(of *script.Script, args ...any) script.Call {
	return script.Call{Script: of, Keys: s.keys, Args: args}
}

// askFor asks for one of that many permits, and for a place in the queue unless grace is 0, for no longer than patience, in ms or a
// queue.Patience. inbox may be empty. arrived is when the caller came, in µs by the server's clock, or 0 for now. The reply is a
// queue.Asked.
func (s sem) askFor(token string, permits int, ttl, grace time.Duration, patience any, inbox string, arrived int64) script.Call {
	return s.call(s.acquire, token, permits, script.Millis(ttl), script.Millis(grace), patience, inbox, arrived)
}

// beat says that a waiter is alive. It returns in how many ms it may be worth asking again, or 0 if the waiter has to ask.
func (s sem) beat(token string, ticket int64, grace time.Duration) script.Call {
	return s.call(s.heartbeat, token, ticket, script.Millis(grace))
}

// extend extends a lease by ttl. It returns 1, or why the token has no permit.
func (s sem) extend(token string, ttl time.Duration, fence int64) script.Call {
	return s.call(s.renew, token, script.Millis(ttl), fence)
}

// giveUp releases whatever the token has. It returns 1, or why the token has nothing. lost: some request of the token may come
// later.
func (s sem) giveUp(token string, fence int64, lost bool) script.Call {
	return s.call(s.release, token, fence, lost)
}

// revokeAll takes the permits from all holders, and returns how many there were.
func (s sem) revokeAll(id string) script.Call { return s.call(s.revoke, id) }

// look asks who has a permit.
func (s sem) look() script.Call { return s.call(s.inspect) }

// parseLooked reads the reply to look.
func parseLooked(cmd *redis.Cmd) (Info, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Info{}, err
	}
	if len(reply)%2 != 1 {
		return Info{}, fmt.Errorf("unexpected reply %v", reply)
	}
	waiters, _ := reply[0].(int64)
	info := Info{Waiters: int(waiters)}
	for i := 1; i < len(reply); i += 2 {
		token, _ := reply[i].(string)
		left, _ := reply[i+1].(int64)
		info.Holders = append(info.Holders, Holder{Token: token, Left: time.Duration(left) * time.Millisecond})
	}
	return info, nil
}
