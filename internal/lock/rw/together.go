package rw

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/redis/script"
)

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
