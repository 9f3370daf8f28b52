// Package rw has the scripts of package rwlock. The updates of a Guard take a lock and give it up in one step with what they do beside
// it (package protocol), so these scripts are made of the same parts.
package rw

import (
	_ "embed"
	"strings"

	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
)

var (
	//go:embed lua/fields.lua
	fields string
	//go:embed lua/prelude.lua
	own string
	//go:embed lua/acquire_free.lua
	acquireFree string
	//go:embed lua/acquire_first.lua
	acquireFirst string
	//go:embed lua/acquire.lua
	acquire string
	//go:embed lua/release_lone.lua
	releaseLone string
	//go:embed lua/release_first.lua
	releaseFirst string
	//go:embed lua/release.lua
	release string
	//go:embed lua/heartbeat.lua
	heartbeat string
	//go:embed lua/renew.lua
	renew string
	//go:embed lua/revoke.lua
	revoke string
	//go:embed lua/inspect.lua
	inspect string
	//go:embed lua/downgrade.lua
	downgrade string
	//go:embed lua/upgrade.lua
	upgrade string
)

// Keys is how many keys a lock has, and Acquiring and Releasing are how many arguments the scripts take.
const (
	Keys      = 6
	Acquiring = 7
	Releasing = 3
)

// Scripts are the operations on a lock.
type Scripts struct {
	queue.Scripts

	Downgrade, Upgrade *script.Script
}

// Compile makes the scripts, those with a common case with that before the rest; tests of the protocol edit their sources.
func Compile(edit func(source string) string) *Scripts {
	begin, acquiring, releasing := Shortcuts()
	s := func(parts ...string) *script.Script {
		return script.New(edit(begin + strings.Join(parts, "")))
	}
	rest := func(source string) *script.Script { return s(queue.Prelude(), own, source) }
	return &Scripts{
		Scripts: queue.Scripts{
			Acquire: s(acquiring[:]...), Release: s(releasing[:]...),
			Heartbeat: rest(heartbeat), Renew: rest(renew), Revoke: rest(revoke), Inspect: rest(inspect),
		},
		Downgrade: rest(downgrade), Upgrade: rest(upgrade),
	}
}

// Shortcuts are the two scripts with a common case, in parts: what both begin with, and of each its common case and the rest.
func Shortcuts() (begin string, acquiring, releasing [2]string) {
	prelude := queue.Prelude() + own
	return fields, [2]string{acquireFree + acquireFirst, prelude + acquire}, [2]string{releaseLone + releaseFirst, prelude + release}
}

// Acquire begins a script that takes a lock and does more: it defines acquire_free and acquire, which is acquire.lua with its keys and arguments.
func Acquire() string {
	return fields + acquireFree + Function("acquire", queue.Prelude()+own+acquire)
}

// Release begins a script that gives a lock up and does more: it defines is_lone, release_lone and, with the whole of release.lua, release.
func Release() string {
	return fields + releaseLone + Function("release", queue.Prelude()+own+release)
}

// Function makes a Lua function of a script.
func Function(name, source string) string {
	return "local function " + name + "(KEYS, ARGV)\n" + source + "\nend\n"
}
