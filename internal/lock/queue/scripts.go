package queue

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

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
