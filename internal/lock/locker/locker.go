// Package locker is what the locks of packages mutex, rwlock and semaphore are made of: a Locker, and its Leases. What
// tells a kind of lock from the others is how a Claim asks for it and gives it up. Queued is the Claim of the last two,
// whose holders and waiters have leases of their own in Redis.
package locker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/watch/observe"
)

// Redis is what a Locker needs of a client, which can also subscribe (package goredis).
type Redis interface {
	script.Processor
	script.Pipeliner
}

// Locker hands out leases, and is what they ask, wait and hold with. A Locker without a Life stands for one that is
// nil.
type Locker struct {
	lifecycle.LockErrors

	Life   *lifecycle.Lender[*Lease]
	Redis  *send.Sender
	Inbox  *wake.Inbox
	Keeper *lease.Keeper // nil: no lease is renewed by it
	Config config.Lock   // with the defaults
	Trust  time.Duration // how long a lease is trusted after a renewal
	Fenced bool          // the contexts of its leases have their fences

	rdb    Redis
	leaves [2]func() // give up the inbox and the keeper
}

// Nil is what a nil Locker of that package is: its calls say so.
func Nil(pkg string) *Locker { return &Locker{LockErrors: lifecycle.LockErrors{Package: pkg}} }

// New returns a Locker that asks nobody by itself.
func New(pkg string, cfg config.Lock) *Locker {
	k := Nil(pkg)
	k.Life, k.Config, k.Trust = lifecycle.NewLender((*Lease).abort), cfg, cfg.TTL
	return k
}

// Open returns a Locker on a Redis. It does no I/O and starts no goroutine. The error names the package and every field
// that is out of range; more has the problems of fields that only this kind of lock has.
func Open(pkg string, rdb Redis, cfg config.Lock, more error) (*Locker, error) {
	if err := errors.Join(config.CheckClient(rdb), goredis.CheckOnePlace(rdb), cfg.Check(), more, send.CheckReplicas(rdb, cfg.Replicas)); err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	k := New(pkg, cfg.WithDefaults())
	k.rdb, k.Redis = rdb, send.NewSender(rdb, k.Config.RedisTimeout, k.Life.Life)
	k.Inbox, k.leaves[0] = wake.Open(rdb, k.Config.Prefix)
	k.Keeper, k.leaves[1] = lease.Open(rdb, k.Config.RedisTimeout)
	return k, nil
}

// Close ends the contexts of all leases, unlocks them, and waits for what is in flight: when Redis hangs, for the
// client's time-outs. next, if not nil, is called when no call is under way any more. It always returns nil.
func (k *Locker) Close(next func()) error {
	if k.Life == nil {
		return nil // it was not opened: there is nothing to close
	}
	k.Life.Close(lifecycle.ErrLockClosed)
	if next != nil {
		next()
	}
	if k.Redis != nil {
		k.Redis.Close()
	}
	for _, leave := range k.leaves {
		if leave != nil {
			leave()
		}
	}
	return nil
}

// Begin begins a call on the lock of the name. Each nil is followed by one Life.Done.
func (k *Locker) Begin(name string) error {
	if k.Life == nil {
		return k.NilLocker()
	}
	return k.LockErrors.Begin(k.Life.Life, name)
}

// RoundTrip is how long a request for the lock of the name takes at present, as far as is known.
func (k *Locker) RoundTrip(name string) time.Duration {
	return k.Redis.RoundTrip(keys.Tagged(k.Config.Prefix, name))
}

// Wait waits for a lock. The caller fills in the fields of the Waiter that differ between locks: ID, Claim, Keeper and
// Heart.
func (k *Locker) Wait(ctx context.Context, w queue.Waiter) (queue.Grant, error) {
	w.Inbox, w.Grace, w.Patience, w.Ended = k.Inbox, queue.Grace(k.Config.TTL), k.Config.TTL, k.Life.Ending
	for {
		g, err := w.Wait(ctx)
		if err != nil || !g.Short || !k.Config.FixedLease {
			return g, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// Renew runs the call that renews a lease. Replicas acknowledge it, if they have to.
func (k *Locker) Renew(ctx context.Context, call script.Call) (reply int, sent time.Time, err error) {
	reply, sent, err = k.renew(ctx, call)
	if call.Alone == nil || !script.Torn(err) {
		return reply, sent, err
	}
	alone, when, failed := k.renew(ctx, *call.Alone)
	if failed != nil || alone != queue.Done {
		return reply, sent, err
	}
	return alone, when, nil
}

func (k *Locker) renew(ctx context.Context, call script.Call) (reply int, sent time.Time, err error) {
	var answer send.Reply
	if k.Config.Replicas > 0 {
		answer, err = k.Redis.Acknowledged(ctx, call, k.Config.Replicas)
	} else {
		answer, err = k.Redis.Ask(ctx, call, nil)
	}
	if err != nil {
		return 0, sent, err
	}
	reply, err = answer.Int()
	return reply, answer.Sent, err
}

// Confirm makes replicas acknowledge a grant, if the Config asks for it, whichever connection the grant came by: it
// renews the lease, and counts the replicas that have the renewal. So it also notices if a failover has forgotten the
// grant.
func (k *Locker) Confirm(ctx context.Context, renewal script.Call, g *queue.Grant) error {
	reply, sent, err := k.Renew(ctx, renewal)
	if err == nil && reply != queue.Done {
		err = lost(reply)
	}
	g.Sent, g.Length = sent, k.Config.TTL
	return err
}

// lost is why a lease is lost, according to a script's reply.
func lost(reply int) error {
	if reply == queue.Revoked {
		return lifecycle.ErrRevoked
	}
	return lifecycle.ErrLeaseLost
}

// Run runs a call that is about the lock of the name, and that nobody has asked for the lock with. read gets its reply.
func (k *Locker) Run(
	ctx context.Context, op, name string, call func(base string) script.Call, read func(*script.Reply) error,
) error {
	if err := k.Begin(name); err != nil {
		return err
	}
	defer k.Life.Done()
	reply, err := k.Redis.Ask(ctx, call(keys.Tagged(k.Config.Prefix, name)), nil)
	if err == nil {
		err = read(reply.Cmd)
	}
	return k.Failed(op, name, err)
}

// Revoke runs the call that takes the lock of the name away, and returns how many held it.
func (k *Locker) Revoke(ctx context.Context, name string, call func(base string) script.Call) (holders int, err error) {
	err = k.Run(ctx, "revoke", name, call, func(reply *script.Reply) (err error) {
		holders, err = reply.Int()
		return err
	})
	return holders, err
}

// SelfCheck checks a Locker that needs those rights. try takes a lock, and gives it up.
func (k *Locker) SelfCheck(ctx context.Context, needs acl.Set, try func(ctx context.Context, name string) error) error {
	name := acl.Name()
	if err := k.Begin(name); err != nil {
		return err
	}
	defer k.Life.Done()
	listen := func(ctx context.Context) error { return acl.CheckChannel(ctx, k.Life, k.rdb, k.Inbox.Channel()) }
	return needs.SelfCheck(ctx, k.Life.Life, k.rdb, k.Config.Prefix, listen, func(ctx context.Context) error { return try(ctx, name) })
}

// Observed is the Locker for package admin. how says how a lease is held, and with which fence, if there is one.
func (k *Locker) Observed(kind string, how func(*Lease) (mode string, fence int64)) observe.Locker {
	if k.Life == nil {
		return observe.Locker{}
	}
	seen := observe.Locker{Kind: kind, Prefix: k.Config.Prefix, Instance: k.Config.Instance}
	if k.Inbox != nil {
		seen.Up = k.Inbox.Up
	}
	seen.Held = func() (held []observe.Held) {
		for _, l := range k.Life.Held() {
			mode, fence := how(l)
			held = append(held, observe.Held{
				Name: l.Name, Token: l.Token, Mode: mode, Fence: fence, Began: l.hold.Began(), Trusted: l.TrustedUntil(),
			})
		}
		return held
	}
	return seen
}
