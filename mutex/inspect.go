package mutex

import (
	"context"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

// Info is what Redis knows of a lock.
type Info struct {
	Token    string        // of the holder; empty: the lock is free
	Instance string        // of the holder: its Config.Instance; empty: not known
	Fence    int64         // of the last acquisition; 0: none is remembered
	Left     time.Duration // until the holder's lease ends, unless it is renewed
	Holds    int           // how often its owner has it; 1 without an owner
	Waiters  int           // in the queue: processes, callers that have an owner, and the first few Fair callers of each process
}

// Inspect reports who holds the lock of the name and how many wait for it. For a lock that nobody ever took, it returns the
// zero Info.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	var info Info
	err := k.core().Run(ctx, "inspect", name, func(base string) script.Call { return inspecting(base + ending) }, info.read)
	return info, err
}

// Revoke takes the lock of the name away from its holder, and reports whether there was one. The holder's context ends with
// ErrRevoked: as soon as the message reaches it, or else with its next renewal; with FixedLease, when its lease ends. The next
// holder does not wait for that.
func (k *Locker) Revoke(ctx context.Context, name string) (bool, error) {
	holders, err := k.revoke(ctx, name)
	return holders > 0, err
}

func (k *Locker) revoke(ctx context.Context, name string) (holders int, err error) {
	return k.core().Revoke(ctx, name, func(base string) script.Call { return revoking(base+ending, k.core().Config.Prefix) })
}

// parkedMark is what the token of a lock has, behind the id that parked it: see park.lua.
const parkedMark = "+"

// read reads the reply of inspect.lua.
func (i *Info) read(cmd *script.Reply) error {
	reply, err := cmd.Slice()
	if err != nil {
		return err
	}
	number := func(i int) int64 { return script.Number(reply, i) }
	token := script.String(reply, 0)
	*i = Info{
		Token: token, Instance: keys.InstanceOf(strings.TrimSuffix(token, parkedMark)), Fence: number(1), Left: script.Duration(number(2)),
		Holds: int(number(3)), Waiters: int(number(4)),
	}
	return nil
}
