package inprocess

import (
	"context"
	"sync"

	"github.com/cacheguard/go/internal/lock/queue"
)

// Lock waits for the locks of the keys, which are sorted, until ctx or the Guard ends. Release may be called more than once. Not ok: nothing
// is locked.
func (p *Process) Lock(ctx, ending context.Context, keys []string) (release func(), ok bool) {
	taken := make([]*queue.Guest, 0, len(keys))
	release = sync.OnceFunc(func() {
		for _, holder := range taken {
			holder.Leave()
		}
	})
	for _, key := range keys {
		holder := new(queue.Guest)
		err := holder.Enter(ctx, ending, &p.Locks, key)
		if err == nil {
			taken = append(taken, holder)
		}
		if err != nil || ctx.Err() != nil || ending.Err() != nil {
			release()
			return nil, false
		}
	}
	return release, true
}
