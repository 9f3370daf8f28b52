package rwlock

import (
	"context"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

// Info is what Redis knows of a lock.
type Info struct {
	Token          string        // of the writer that holds it; empty: none does
	Instance       string        // of that writer: its Config.Instance; empty: not known
	Readers        int           // that hold it
	Fence          int64         // of the last writer; 0: none is remembered
	Left           time.Duration // until the leases of the holders end, unless they are renewed
	WaitingWriters int           // in the queue: the first few of each process
	WaitingReaders int
}

// Inspect reports who holds the lock of the name and how many wait for it. For a lock that nobody ever took, it returns the
// zero Info.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	var info Info
	err := k.core().Run(ctx, "inspect", name, func(base string) script.Call { return callsAt(base).Inspecting() }, info.read)
	return info, err
}

// Revoke takes the lock of the name away from all its holders, and returns how many there were. Their contexts end with
// ErrRevoked when they are next renewed, at most a third of TTL later, or, with FixedLease, when their leases end; the next
// holders do not wait for that. Waiters keep their places. Revoke takes a fence, so that those of the revoked holders are
// old.
func (k *Locker) Revoke(ctx context.Context, name string) (holders int, err error) {
	return k.core().Revoke(ctx, name, func(base string) script.Call { return callsAt(base).Revoking(keys.NewToken("")) })
}

func callsAt(base string) queue.Calls { return rw.At(rw.Protocol(), base) }

// read reads the reply of inspect.lua.
func (i *Info) read(cmd *script.Reply) error {
	reply, err := cmd.Slice()
	if err != nil {
		return err
	}
	if len(reply) != 6 {
		return fmt.Errorf("unexpected reply %v", reply)
	}
	number := func(i int) int64 { return script.Number(reply, i) }
	token := script.String(reply, 0)
	*i = Info{
		Token: token, Instance: keys.InstanceOf(token), Fence: number(1), Left: script.Duration(number(2)),
		Readers: int(number(3)), WaitingWriters: int(number(4)), WaitingReaders: int(number(5)),
	}
	return nil
}
