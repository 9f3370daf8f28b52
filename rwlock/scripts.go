package rwlock

import (
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rwscripts"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

var protocol = rwscripts.Compile(func(source string) string { return source })

// mode is how a lock is held.
type mode string

const (
	writing mode = "w"
	reading mode = "r"
)

// The modes, as arguments of scripts.
var argWriting, argReading any = string(writing), string(reading)

func (m mode) arg() any {
	if m == writing {
		return argWriting
	}
	return argReading
}

// lock makes the calls that concern one lock.
type lock struct {
	queue.Calls

	scripts *rwscripts.Scripts
}

// lockAt returns the lock whose keys begin with base, which has the hash tag.
func lockAt(s *rwscripts.Scripts, base string) lock {
	main := base + ":rw"
	all := main + ":readers" + main + ":writers" + main + ":waiting" + main + ":alive" + main + ":gone" // one string for five
	l := lock{queue.Calls{Scripts: &s.Scripts, Keys: make([]string, 0, rwscripts.Keys)}, s}
	l.Keys = append(l.Keys, main)
	for _, behind := range [...]string{":readers", ":writers", ":waiting", ":alive", ":gone"} {
		n := len(main) + len(behind)
		l.Keys = append(l.Keys, all[:n])
		all = all[n:]
	}
	return l
}

// inboxKey is what messages for a waiter for the lock with this first key are about.
func inboxKey(lock string, m mode, token string) string {
	if m == writing {
		return lock + ":" + token
	}
	return lock
}

// toReader makes the writer with this fence a reader. It returns 1, or why the token does not hold the lock.
func (l lock) toReader(token string, ttl time.Duration, fence int64) script.Call {
	return l.Call(l.scripts.Downgrade, token, script.Millis(ttl), fence)
}

// toWriter makes a reader the writer. It returns the new fence, 1 if others hold or wait, or why the token does not hold.
func (l lock) toWriter(token string, ttl time.Duration, fence int64) script.Call {
	return l.Call(l.scripts.Upgrade, token, script.Millis(ttl), fence)
}

// parseInfo reads the reply of inspect.lua.
func parseInfo(cmd *script.Reply) (Info, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Info{}, err
	}
	if len(reply) != 6 {
		return Info{}, fmt.Errorf("unexpected reply %v", reply)
	}
	number := func(i int) int64 { return script.Number(reply, i) }
	token := script.String(reply, 0)
	return Info{
		Token: token, Instance: keys.InstanceOf(token), Fence: number(1), Left: script.Duration(number(2)),
		Readers: int(number(3)), WaitingWriters: int(number(4)), WaitingReaders: int(number(5)),
	}, nil
}
