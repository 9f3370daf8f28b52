// Package permits has the locks of package semaphore, which FleetLoads of a Guard takes too.
package permits

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/config"
)

const (
	spareWidth = 4  // how many callers of a process may queue in Redis beside the ones that could be next, in case that one leaves
	mostWidth  = 64 // how many may at all
)

// Locker hands out permits.
type Locker struct {
	*locker.Locker

	Permits int // of each name

	Doors queue.Doors
}

// New returns a Locker, for the package of that name. more has the problems of fields that only it knows.
func New(pkg string, rdb locker.Redis, cfg config.Lock, permits int, more error) (*Locker, error) {
	base, err := locker.Open(pkg, rdb, cfg, more)
	if err != nil {
		return nil, err
	}
	return &Locker{
		Locker: base, Permits: permits, Doors: queue.Doors{Width: min(permits+spareWidth, mostWidth), RoundTrip: base.RoundTrip},
	}, nil
}

// Lock waits for a permit of the name.
func (k *Locker) Lock(ctx context.Context, name string) (*locker.Lease, error) {
	return locker.Get(ctx, k.Locker, "Lock", name, k, Wait)
}

// TryLock takes a permit if one is to be had.
func (k *Locker) TryLock(ctx context.Context, name string) (*locker.Lease, error) {
	return locker.Get(ctx, k.Locker, "TryLock", name, k, Try)
}

// Wait waits for a permit.
func Wait(ctx context.Context, name string, k *Locker) (*locker.Lease, queue.Grant, error) {
	c := k.claim(name)
	c.Doors = &k.Doors
	g, err := c.Wait(ctx)
	return &c.Lease, g, err
}

// Try asks for one, once.
func Try(ctx context.Context, name string, k *Locker) (*locker.Lease, queue.Grant, error) {
	c := k.claim(name)
	g, err := c.Try(ctx)
	return &c.Lease, g, err
}

func (k *Locker) claim(name string) *locker.Queued {
	c := &locker.Queued{Calls: At(protocol, keys.Tagged(k.Config.Prefix, name)), As: k.Permits}
	c.Begin(k.Locker, c, name)
	c.Watched = c.Keys[0] + ":" + c.Lease.Token
	return c
}

// Inspect asks who has permits of the name. read gets the reply of inspect.lua.
func (k *Locker) Inspect(ctx context.Context, name string, read func(*script.Reply) error) error {
	return k.Run(ctx, "inspect", name, func(base string) script.Call { return At(protocol, base).Inspecting() }, read)
}
