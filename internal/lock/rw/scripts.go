// Package rw has the locks of package rwlock, which the updates of a Guard take too. They take a lock and give it up in
// one step with what they do beside it (package protocol), so those scripts are made of the same parts as these.
package rw

import (
	"context"
	"embed"
	"strings"

	"github.com/cacheguard/go/internal/lock/locker"
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

// Awaited reports whether somebody in this process waits to write under the lock, or does so.
func (k *Locker) Awaited(name string) bool { return k.Writers.Present(name) }

// TryLockTogether takes all of the locks for writing, in one step with what their holder has to do at once, or none of
// them. It waits for nobody: then it returns what matches ErrNotAcquired.
func (k *Locker) TryLockTogether(ctx context.Context, names []string, b locker.Beside) ([]*locker.Queued, error) {
	return locker.TryTogether(ctx, k.Locker, names, func(name string) *locker.Queued { return &k.claim(name, Writing).Queued }, b)
}

// UnlockTogether gives such locks up with the calls that give makes. read returns the release's part of a reply.
func (k *Locker) UnlockTogether(
	held []*locker.Queued, give func(i int, release script.Call) script.Call, read func(i int, reply *script.Reply) (int, error),
) []locker.Unlocked {
	return locker.UnlockTogether(k.Locker, held, give, read)
}
