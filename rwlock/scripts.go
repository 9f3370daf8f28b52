package rwlock

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

//go:embed lua/fields.lua
var fields string

//go:embed lua/prelude.lua
var own string

// prelude comes before every script, and before that its fields and its common case.
var prelude = queue.Prelude() + own

//go:embed lua/acquire.lua
var acquireSource string

//go:embed lua/acquire_free.lua
var acquireFree string

//go:embed lua/release_lone.lua
var releaseLone string

//go:embed lua/heartbeat.lua
var heartbeatSource string

//go:embed lua/renew.lua
var renewSource string

//go:embed lua/release.lua
var releaseSource string

//go:embed lua/downgrade.lua
var downgradeSource string

//go:embed lua/upgrade.lua
var upgradeSource string

//go:embed lua/revoke.lua
var revokeSource string

//go:embed lua/inspect.lua
var inspectSource string

// A script's answer about a token that does not hold the lock, when it returns a number.
const (
	replyRevoked = -1
	replyLost    = 0
	replyDone    = 1 // from upgrade: not done, because others hold or wait
)

// scripts are the operations on a lock.
type scripts struct {
	acquire, heartbeat, renew, release, downgrade, upgrade, revoke, inspect *script.Script
}

// compile makes the scripts, those with a common case with that before the rest; the tests of the protocol edit their sources.
func compile(edit func(source string) string) *scripts {
	s := func(common, source string) *script.Script {
		return script.New(edit(fields + common + prelude + source))
	}
	return &scripts{
		acquire: s(acquireFree, acquireSource), release: s(releaseLone, releaseSource),
		heartbeat: s("", heartbeatSource), renew: s("", renewSource), downgrade: s("", downgradeSource),
		upgrade: s("", upgradeSource), revoke: s("", revokeSource), inspect: s("", inspectSource),
	}
}

var protocol = compile(func(source string) string { return source })

// mode is how a lock is held.
type mode string

const (
	writing mode = "w"
	reading mode = "r"
)

// What a mode is as an argument of a script.
var argWriting, argReading any = string(writing), string(reading)

func (m mode) arg() any {
	if m == writing {
		return argWriting
	}
	return argReading
}

// lock makes the calls that concern one lock.
type lock struct {
	*scripts
	keys []string
}

// lockAt returns the lock whose keys begin with base, which has the hash tag.
func lockAt(s *scripts, base string) lock {
	main := base + ":rw"
	all := main + ":readers" + main + ":writers" + main + ":waiting" + main + ":alive" + main + ":gone" // one string for five
	l := lock{s, make([]string, 0, 6)}
	l.keys = append(l.keys, main)
	for _, behind := range [...]string{":readers", ":writers", ":waiting", ":alive", ":gone"} {
		n := len(main) + len(behind)
		l.keys = append(l.keys, all[:n])
		all = all[n:]
	}
	return l
}

// inboxKey is what messages for a waiter are about.
func (l lock) inboxKey(m mode, token string) string {
	if m == writing {
		return l.keys[0] + ":" + token
	}
	return l.keys[0]
}

func (l lock) call(s *script.Script, args ...any) script.Call {
	return script.Call{Script: s, Keys: l.keys, Args: args}
}

// askFor asks for the lock, and for a place in the queue unless grace is 0, for no longer than patience, in ms or a
// queue.Patience. inbox may be empty. arrived is when the caller came, in µs by the server's clock, or 0 for now.
func (l lock) askFor(m mode, token string, ttl, grace time.Duration, patience any, inbox string, arrived int64) script.Call {
	return l.call(l.acquire, token, m.arg(), script.Millis(ttl), script.Millis(grace), patience, inbox, arrived)
}

// beat says that a waiter is alive. It returns in how many ms it may be worth asking again, or 0 if the waiter has to ask.
func (l lock) beat(token string, ticket int64, grace time.Duration) script.Call {
	return l.call(l.heartbeat, token, ticket, script.Millis(grace))
}

// extend extends a lease by ttl. It returns 1, or why the token does not hold the lock.
func (l lock) extend(token string, ttl time.Duration, fence int64) script.Call {
	return l.call(l.renew, token, script.Millis(ttl), fence)
}

// giveUp releases whatever the token has. It returns 1, or why the token has nothing. lost: some request of the token may come
// later.
func (l lock) giveUp(token string, fence int64, lost bool) script.Call {
	return l.call(l.release, token, fence, lost)
}

// toReader makes the writer with this fence a reader. It returns 1, or why the token does not hold the lock.
func (l lock) toReader(token string, ttl time.Duration, fence int64) script.Call {
	return l.call(l.downgrade, token, script.Millis(ttl), fence)
}

// toWriter makes a reader the writer. It returns the new fence, 1 if others hold or wait, or why the token does not hold.
func (l lock) toWriter(token string, ttl time.Duration, fence int64) script.Call {
	return l.call(l.upgrade, token, script.Millis(ttl), fence)
}

// revokeAll takes the lock from all holders, and returns how many there were.
func (l lock) revokeAll(id string) script.Call { return l.call(l.revoke, id) }

// look asks who holds the lock.
func (l lock) look() script.Call { return l.call(l.inspect) }

// parseLooked reads the reply to look.
func parseLooked(cmd *redis.Cmd) (Info, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Info{}, err
	}
	var numbers [6]int64
	if len(reply) != len(numbers) {
		return Info{}, fmt.Errorf("unexpected reply %v", reply)
	}
	for i := range numbers {
		numbers[i], _ = reply[i].(int64)
	}
	info := Info{
		Fence: numbers[1], Left: time.Duration(numbers[2]) * time.Millisecond,
		Readers: int(numbers[3]), WaitingWriters: int(numbers[4]), WaitingReaders: int(numbers[5]),
	}
	info.Token, _ = reply[0].(string)
	info.Instance = keys.InstanceOf(info.Token)
	return info, nil
}
