package rw

import (
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

var protocol = Compile(func(source string) string { return source })

// Protocol is the scripts.
func Protocol() *Scripts { return protocol }

// Mode is how a lock is held.
type Mode string

// The modes.
const (
	Writing Mode = "w"
	Reading Mode = "r"
)

// The modes, as arguments of scripts.
var argWriting, argReading any = string(Writing), string(Reading)

// Arg is the mode as an argument of a script.
func (m Mode) Arg() any {
	if m == Writing {
		return argWriting
	}
	return argReading
}

// Calls makes the calls that concern one lock.
type Calls struct {
	queue.Calls

	scripts *Scripts
}

// At returns the calls of the lock whose keys begin with base, which has the hash tag.
func At(s *Scripts, base string) Calls {
	main := base + ":rw"
	all := main + ":readers" + main + ":writers" + main + ":waiting" + main + ":alive" + main + ":gone" // one string for five
	l := Calls{queue.Calls{Scripts: &s.Scripts, Keys: make([]string, 0, Keys)}, s}
	l.Keys = append(l.Keys, main)
	for _, behind := range [...]string{":readers", ":writers", ":waiting", ":alive", ":gone"} {
		n := len(main) + len(behind)
		l.Keys = append(l.Keys, all[:n])
		all = all[n:]
	}
	return l
}

// InboxKey is what messages for a waiter for the lock with this first key are about.
func InboxKey(lock string, m Mode, token string) string {
	if m == Writing {
		return lock + ":" + token
	}
	return lock
}

// ToReader makes the writer with this fence a reader. It returns 1, or why the token does not hold the lock.
func (l Calls) ToReader(token string, ttl time.Duration, fence int64) script.Call {
	return l.Call(l.scripts.Downgrade, token, script.Millis(ttl), fence)
}

// ToWriter makes a reader the writer. It returns the new fence, 1 if others hold or wait, or why the token does not hold.
func (l Calls) ToWriter(token string, ttl time.Duration, fence int64) script.Call {
	return l.Call(l.scripts.Upgrade, token, script.Millis(ttl), fence)
}
