package semaphore

import (
	_ "embed"
	"fmt"

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

// compile makes the scripts; the tests of the protocol edit their sources.
func compile(edit func(source string) string) *queue.Scripts {
	s := func(source string) *script.Script {
		return script.New(edit(fields + queue.Prelude() + prelude + source))
	}
	return &queue.Scripts{
		Acquire: s(acquireSource), Heartbeat: s(heartbeatSource), Renew: s(renewSource), Release: s(releaseSource),
		Revoke: s(revokeSource), Inspect: s(inspectSource),
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
func parseInfo(cmd *redis.Cmd) (Info, error) {
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
