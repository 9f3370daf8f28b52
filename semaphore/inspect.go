package semaphore

import (
	"context"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

// Info is what Redis knows of a semaphore.
type Info struct {
	Holders []Holder // who has a permit, in the order in which their leases end
	Waiters int      // in the queue: the first few of each process
}

// Holder has a permit.
type Holder struct {
	Token string
	Left  time.Duration // until its lease ends, unless it is renewed
}

// Inspect looks at the semaphore of the name.
func (k *Locker) Inspect(ctx context.Context, name string) (Info, error) {
	var info Info
	err := k.core().Run(ctx, "inspect", name, func(base string) script.Call { return callsAt(protocol, base).Inspecting() }, info.read)
	return info, err
}

// Revoke takes the permits of the name away from all holders, and returns how many there were. Their contexts end with
// ErrRevoked when they are next renewed, at most a third of TTL later; the next holders do not wait for that. Waiters keep
// their places.
func (k *Locker) Revoke(ctx context.Context, name string) (holders int, err error) {
	return k.core().Revoke(ctx, name, func(base string) script.Call { return callsAt(protocol, base).Revoking(keys.NewToken("")) })
}

// read reads the reply of inspect.lua.
func (i *Info) read(cmd *script.Reply) error {
	reply, err := cmd.Slice()
	if err != nil {
		return err
	}
	if len(reply)%2 != 1 {
		return fmt.Errorf("unexpected reply %v", reply)
	}
	i.Waiters = int(script.Number(reply, 0))
	for n := 1; n < len(reply); n += 2 {
		i.Holders = append(i.Holders, Holder{Token: script.String(reply, n), Left: script.Duration(script.Number(reply, n+1))})
	}
	return nil
}
