package semaphore

import (
	"embed"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

// compile makes the scripts; the tests of the protocol edit their sources.
func compile(edit func(source string) string) *queue.Scripts {
	s := func(name string) *script.Script {
		return script.New(edit(script.Text(files, "fields") + queue.Prelude() + script.Text(files, "prelude") + queue.Settled(script.Text(files, name))))
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
