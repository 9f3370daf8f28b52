package semaphore

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
)

const (
	spareWidth = 4  // how many callers of a process may queue in Redis beside the ones that could be next, in case that one leaves
	mostWidth  = 64 // how many may at all
)

// await waits for a permit.
func (k *Locker) await(ctx context.Context, name string) (*locker.Lease, queue.Grant, error) {
	c := k.claim(name)
	c.Doors = &k.doors
	g, err := c.Wait(ctx)
	return &c.Lease, g, err
}

// try asks for one, once.
func (k *Locker) try(ctx context.Context, name string) (*locker.Lease, queue.Grant, error) {
	c := k.claim(name)
	g, err := c.Try(ctx)
	return &c.Lease, g, err
}

func (k *Locker) claim(name string) *locker.Queued {
	c := &locker.Queued{Calls: callsAt(protocol, keys.Tagged(k.base.Config.Prefix, name)), As: k.permits}
	c.Begin(k.base, c, name)
	c.Watched = c.Keys[0] + ":" + c.Lease.Token
	return c
}
