// Package locker is the code that the Lockers of packages mutex, rwlock and semaphore share. Base serves all three.
// Claim serves the last two, whose holders and waiters have leases of their own.
package locker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/lock/hold"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/link"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Redis is what a Locker needs of a client, which can also subscribe (package goredis).
type Redis interface {
	script.Processor
	script.Pipeliner
}

// Base is what a Locker asks, waits and holds with.
type Base struct {
	Redis  *link.Sender
	Inbox  *wake.Inbox
	Keeper *lease.Keeper
	Config config.Lock // with the defaults

	rdb    Redis
	life   *lifecycle.Life
	leaves [2]func() // give up the inbox and the keeper
}

// Open returns the Base of a Locker with that life. It does no I/O and starts no goroutine. The caller calls Close when
// the life is over. The error names the package and every field that is out of range; more has the problems of fields
// that only this kind of lock has.
func Open(pkg string, rdb Redis, cfg config.Lock, more error, life *lifecycle.Life) (*Base, error) {
	if err := errors.Join(config.CheckClient(rdb), goredis.CheckOnePlace(rdb), cfg.Check(), more, link.CheckReplicas(rdb, cfg.Replicas)); err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	cfg = cfg.WithDefaults()
	b := &Base{rdb: rdb, Config: cfg, life: life, Redis: link.NewSender(rdb, cfg.RedisTimeout, life)}
	b.Inbox, b.leaves[0] = wake.Open(rdb, cfg.Prefix)
	b.Keeper, b.leaves[1] = lease.Open(rdb, cfg.RedisTimeout)
	return b, nil
}

// Close waits for what is in flight: when Redis hangs, for the client's time-outs.
func (b *Base) Close() {
	b.Redis.Close()
	for _, leave := range b.leaves {
		leave()
	}
}

// RoundTrip is how long a request for the lock of the name takes at present, as far as is known.
func (b *Base) RoundTrip(name string) time.Duration {
	return b.Redis.RoundTrip(keys.Tagged(b.Config.Prefix, name))
}

// SelfCheck checks a Locker that needs those rights. try takes a lock, and gives it up.
func (b *Base) SelfCheck(ctx context.Context, needs acl.Set, try func(context.Context) error) error {
	listen := func(ctx context.Context) error { return acl.CheckChannel(ctx, b.life, b.rdb, b.Inbox.Channel()) }
	return needs.SelfCheck(ctx, b.life, b.rdb, b.Config.Prefix, listen, try)
}

// Wait waits for a lock. The caller fills in the fields of the Waiter that differ between locks: ID, Claim, Keeper and
// Heart.
func (b *Base) Wait(ctx context.Context, w queue.Waiter) (queue.Grant, error) {
	w.Inbox, w.Grace, w.Patience, w.Ended = b.Inbox, queue.Grace(b.Config.TTL), b.Config.TTL, b.life.Ending
	for {
		g, err := w.Wait(ctx)
		if err != nil || !g.Short || !b.Config.FixedLease {
			return g, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// Holding is how a lease is held.
func (b *Base) Holding(h hold.Holder) hold.Options {
	o := hold.Options{Holder: h, TTL: b.Config.TTL, Max: b.Config.MaxHold, Replicas: b.Config.Replicas}
	if !b.Config.FixedLease {
		o.Keeper = b.Keeper
	}
	return o
}

// Run runs a call that returns a number, until the context ends or RedisTimeout is over.
func (b *Base) Run(ctx context.Context, call script.Call) (reply int64, sent time.Time, err error) {
	answer, err := b.Redis.Ask(ctx, call, nil)
	if err != nil {
		return 0, sent, err
	}
	reply, err = answer.Int64()
	return reply, answer.Sent, err
}

// Renew runs the call that renews a lease. Replicas acknowledge it, if they have to.
func (b *Base) Renew(ctx context.Context, call script.Call) (reply int, sent time.Time, err error) {
	if b.Config.Replicas <= 0 {
		reply, sent, err := b.Run(ctx, call)
		return int(reply), sent, err
	}
	answer, err := b.Redis.Acknowledged(ctx, call, b.Config.Replicas)
	if err != nil {
		return 0, sent, err
	}
	reply, err = answer.Int()
	return reply, answer.Sent, err
}

// Confirm makes replicas acknowledge a grant, whichever connection it came by: it renews the lease, and counts the
// replicas that have the renewal. So it also notices if a failover has forgotten the grant.
func (b *Base) Confirm(ctx context.Context, renewal func() script.Call, g *queue.Grant) error {
	if b.Config.Replicas <= 0 {
		return nil
	}
	reply, sent, err := b.Renew(ctx, renewal())
	if err == nil && reply != queue.Done {
		err = Lost(reply)
	}
	g.Sent, g.Length = sent, b.Config.TTL
	return err
}

// Lost is why a lease is lost, according to a script's reply.
func Lost(reply int) error {
	if reply == queue.Revoked {
		return lifecycle.ErrRevoked
	}
	return lifecycle.ErrLeaseLost
}
