package rw

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lock/locker"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/config"
)

// How many writers of a process may queue for a lock in Redis, the next one and some in case that one leaves, and how
// many impatient readers.
const (
	WritersWidth = 4
	ReadersWidth = 64
)

// Locker hands out read-write locks.
type Locker struct {
	*locker.Locker

	Writers queue.Doors
	Readers queue.Doors // the impatient ones
}

// New returns a Locker, for the package of that name.
func New(pkg string, rdb locker.Redis, cfg config.Lock) (*Locker, error) {
	base, err := locker.Open(pkg, rdb, cfg, nil)
	if err != nil {
		return nil, err
	}
	base.Fenced = true
	return &Locker{
		Locker:  base,
		Writers: queue.Doors{Width: WritersWidth, RoundTrip: base.RoundTrip},
		Readers: queue.Doors{Width: ReadersWidth, RoundTrip: base.RoundTrip, Shared: true},
	}, nil
}

// Claim is one caller's way to a lock.
type Claim struct {
	locker.Queued

	writes atomic.Bool // it is for writing, or the lease is
}

// ClaimOf is the claim that a lease is on.
func ClaimOf(l *locker.Lease) *Claim { return l.Claim.(*Claim) }

// Writes reports whether the lock is held for writing.
func (c *Claim) Writes() bool { return c.writes.Load() }

// Renewal is the call that renews the lease.
func (c *Claim) Renewal() script.Call {
	if c.Writes() {
		return c.RenewalAt(0)
	}
	return c.RenewalAt(1)
}

// Become notes how the lock is held, and with which fence.
func (c *Claim) Become(writes bool, fence int64) {
	c.Lease.SetFence(fence)
	c.writes.Store(writes)
}

func (k *Locker) claim(name string, m Mode) *Claim {
	c := new(Claim)
	c.Calls, c.As = At(protocol, keys.Tagged(k.Config.Prefix, name)), m.Arg()
	c.writes.Store(m == Writing)
	c.Begin(k.Locker, c, name)
	c.Watched = InboxKey(c.Keys[0], m, c.Lease.Token)
	return c
}

// Lock waits for the lock of the name. call is what the hooks are told.
func (k *Locker) Lock(ctx context.Context, call, name string, m Mode) (*locker.Lease, error) {
	return locker.Get(ctx, k.Locker, call, name, how{k, m}, wait)
}

// TryLock takes the lock if it is to be had.
func (k *Locker) TryLock(ctx context.Context, call, name string, m Mode) (*locker.Lease, error) {
	return locker.Get(ctx, k.Locker, call, name, how{k, m}, try)
}

// Do waits for the lock of the name, and runs f while it holds it for writing.
func (k *Locker) Do(ctx context.Context, name string, f func(context.Context) error) error {
	l, err := k.Lock(ctx, "Lock", name, Writing)
	if err != nil {
		return err
	}
	return locker.Do(ctx, l, f, func(ctx context.Context, f func(context.Context) error) error { return f(ctx) })
}

// how is how a call asks for a lock.
type how struct {
	*Locker

	mode Mode
}

func wait(ctx context.Context, name string, h how) (*locker.Lease, queue.Grant, error) {
	c := h.claim(name, h.mode)
	c.Doors = h.doors(ctx, h.mode)
	g, err := c.Wait(ctx)
	return &c.Lease, g, err
}

func try(ctx context.Context, name string, h how) (*locker.Lease, queue.Grant, error) {
	c := h.claim(name, h.mode)
	g, err := c.Try(ctx)
	return &c.Lease, g, err
}

// doors are where a caller waits before it queues. Readers that are patient need not: each waits for one writer at
// most, and costs no more for leaving than for showing that it lives.
func (k *Locker) doors(ctx context.Context, m Mode) *queue.Doors {
	leaves, given := ctx.Deadline()
	switch {
	case m == Writing:
		return &k.Writers
	case given && time.Until(leaves) < queue.Grace(k.Config.TTL)/3:
		return &k.Readers
	}
	return nil
}
