package rw

import "github.com/cacheguard/go/internal/lock/queue"

var protocol = Compile(func(source string) string { return source })

// Protocol is the scripts.
func Protocol() *queue.Scripts { return protocol }

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

// At returns the calls of the lock whose keys begin with base, which has the hash tag.
func At(s *queue.Scripts, base string) queue.Calls {
	main := base + ":rw"
	all := main + ":readers" + main + ":writers" + main + ":waiting" + main + ":alive" + main + ":gone" // one string for five
	l := queue.Calls{Scripts: s, Keys: make([]string, 0, Keys)}
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
