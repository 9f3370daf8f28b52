package semaphore

import (
	"embed"
	"fmt"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

// compile makes the scripts; the tests of the protocol edit their sources.
func compile(edit func(source string) string) *queue.Scripts {
	s := func(name string) *script.Script {
		return script.New(edit(script.Text(files, "fields") + queue.Prelude() + script.Text(files, "prelude", name)))
	}
	return &queue.Scripts{
		Acquire: s("acquire"), Heartbeat: s("heartbeat"), Renew: s("renew"), Release: s("release"),
		Revoke: s("revoke"), Inspect: s("inspect"),
	}
}

var protocol = compile(func(source string) string { return source })

// callsAt makes the calls that concern the semaphore whose keys begin with base, which has the hash tag. They ask for one of so
// many permits.
func callsAt(s *queue.Scripts, base string) queue.Calls {
	main := base + ":sem"
	return queue.Calls{Scripts: s, Keys: []string{main, main + ":holders", main + ":queue", main + ":alive", main + ":gone"}}
}

// inboxKey is what messages for a waiter for the semaphore with this first key are about.
func inboxKey(semaphore, token string) string { return semaphore + ":" + token }

// parseInfo reads the reply of inspect.lua.
func parseInfo(cmd *script.Reply) (Info, error) {
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
		info.Holders = append(info.Holders, Holder{Token: token, Left: script.Duration(left)})
	}
	return info, nil
}
