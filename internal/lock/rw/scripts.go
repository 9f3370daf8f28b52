// Package rw has the locks of package rwlock, which the updates of a Guard take too. They take a lock and give it up in
// one step with what they do beside it (package protocol), so those scripts are made of the same parts as these.
package rw

import (
	"embed"
	"strings"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

func text(names ...string) string { return script.Text(files, names...) }

// whole is a script behind its fields, without a common case.
func whole(name string) string { return queue.Prelude() + text("prelude") + queue.Settled(text(name)) }

// Keys is how many keys a lock has, and Acquiring and Releasing are how many arguments the scripts take.
const (
	Keys      = 6
	Acquiring = 7
	Releasing = 3
)

// Compile makes the scripts, those with a common case with that before the rest; tests of the protocol edit their
// sources.
func Compile(edit func(source string) string) *queue.Scripts {
	begin, acquiring, releasing := Shortcuts()
	s := func(parts ...string) *script.Script {
		return script.New(edit(begin + strings.Join(parts, "")))
	}
	rest := func(name string) *script.Script { return s(whole(name)) }
	return &queue.Scripts{
		Acquire: s(acquiring[:]...), Release: s(releasing[:]...),
		Heartbeat: rest("heartbeat"), Renew: rest("renew"), Revoke: rest("revoke"), Inspect: rest("inspect"),
		Downgrade: rest("downgrade"), Upgrade: rest("upgrade"),
	}
}

// Shortcuts are the two scripts with a common case, in parts: what both begin with, and of each its common case and the
// rest.
func Shortcuts() (begin string, acquiring, releasing [2]string) {
	return text("fields"), [2]string{text("acquire_free", "acquire_first"), whole("acquire")},
		[2]string{text("release_lone", "release_first"), whole("release")}
}

// Acquire begins a script that takes a lock and does more: it defines acquire_free and acquire, which is acquire.lua
// with its keys and arguments.
func Acquire() string {
	return text("fields", "acquire_free") + Function("acquire", whole("acquire"))
}

// Release begins a script that gives a lock up and does more: it defines is_lone, release_lone and, with the whole of
// release.lua, release.
func Release() string {
	return text("fields", "release_lone") + Function("release", whole("release"))
}

// Function makes a Lua function of a script.
func Function(name, source string) string {
	return "local function " + name + "(KEYS, ARGV)\n" + source + "\nend\n"
}
