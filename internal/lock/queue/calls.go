package queue

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// The answers of such a lock's scripts about a token, where they are numbers.
const (
	Revoked = -1 // it holds nothing, because the lock was taken away
	Lost    = 0  // it holds nothing
	Done    = 1
)

// Scripts are the operations that such locks have in common.
type Scripts struct {
	Acquire, Heartbeat, Renew, Release, Revoke, Inspect *script.Script

	Downgrade, Upgrade *script.Script // nil: holders are all of one kind
}

// Calls makes the calls that concern one such lock.
type Calls struct {
	*Scripts

	Keys []string // as in lua/prelude.lua
}

// Call is the call of a script.
func (c Calls) Call(of *script.Script, args ...any) script.Call {
	return script.Call{Script: of, Keys: c.Keys, Args: args}
}

// Asking asks for the lock, as the argument says, and for a place in the queue unless grace is 0, for no longer than
// patience, in ms or a Patience. inbox may be empty. arrived is when the caller came, in µs by the server's clock, or 0
// for now. The reply is an Asked.
func (c Calls) Asking(token string, as any, ttl, grace time.Duration, patience any, inbox string, arrived int64) script.Call {
	return c.Call(c.Acquire, token, as, script.Millis(ttl), script.Millis(grace), patience, inbox, arrived)
}

// Beating says that a waiter is alive. It returns in how many ms it may be worth asking again, or 0 if the waiter has
// to ask.
func (c Calls) Beating(token string, ticket int64, grace time.Duration) script.Call {
	return c.Call(c.Heartbeat, token, ticket, script.Millis(grace))
}

// Renewing extends a lease by ttl. It returns Done, or why the token holds nothing.
func (c Calls) Renewing(token string, ttl time.Duration, fence int64) script.Call {
	return c.Call(c.Renew, token, script.Millis(ttl), fence)
}

// RenewingAlone is Renewing, by what one of the keys says: that of those that hold, or the first if the token is a
// writer's. It does not say why the token holds nothing.
func (c Calls) RenewingAlone(key int, token string, ttl time.Duration) script.Call {
	return script.Call{Script: renewAlone, Keys: c.Keys[key : key+1], Args: []any{token, script.Millis(ttl), key == 0}}
}

// Releasing gives up whatever the token has. It returns Done, or why the token has nothing. lost: some request of the
// token may come later.
func (c Calls) Releasing(token string, fence int64, lost bool) script.Call {
	return c.Call(c.Release, token, fence, lost)
}

// Revoking takes the lock from all holders, and returns their number.
func (c Calls) Revoking(id string) script.Call { return c.Call(c.Revoke, id) }

// Inspecting asks who holds the lock. Each kind has a reply of its own.
func (c Calls) Inspecting() script.Call { return c.Call(c.Inspect) }

//go:embed lua/*.lua
var files embed.FS

var prelude, renewAlone = script.Text(files, "prelude"), script.Compile(files, "renew_alone")

// Prelude is what the scripts share of locks whose holders and waiters have leases of their own.
func Prelude() string { return prelude }

// Settled is the last part of a script, so that what the prelude calls settle ends it.
func Settled(body string) string { return "return settle(pcall(function()\n" + body + "\nend))\n" }

// Asked is the reply of such a lock's script that asks for it.
type Asked struct {
	Status string        // held, queued or busy
	Fence  int64         // held
	Ticket int64         // queued
	Clock  int64         // queued: what the server's clock showed, in µs
	Left   time.Duration // queued: until it may be worth asking again; busy: until leases of the holders end
}

// ParseAsked reads the reply.
func ParseAsked(cmd *script.Reply) (a Asked, err error) {
	if fence, ok := cmd.Val().(int64); ok {
		return Asked{Status: "held", Fence: fence}, nil
	}
	reply, err := cmd.Slice()
	if err != nil {
		return Asked{}, err
	}
	number := func(i int) int64 { return script.Number(reply, i) }
	switch a.Status = script.String(reply, 0); a.Status {
	case "queued", "busy":
		a.Left, a.Ticket, a.Clock = script.Duration(number(1)), number(2), number(3)
	default:
		return Asked{}, fmt.Errorf("unexpected reply %v", reply)
	}
	return a, nil
}

// ParseGrant reads the message that hands such a lock on: the ticket up to which waiters are granted it, and the fence.
// Not granted: the message is not for the waiter with this ticket, which queued later.
func ParseGrant(body string, ticket int64) (fence int64, granted bool) {
	upTo, rest, _ := strings.Cut(body, ":")
	last, err := strconv.ParseInt(upTo, 10, 64)
	if err != nil || last < ticket {
		return 0, false
	}
	fence, err = strconv.ParseInt(rest, 10, 64)
	return fence, err == nil
}
