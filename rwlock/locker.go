package rwlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/config"
	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/replicas"
	"github.com/cacheguard/go/internal/wake"
)

// doorWidth is how many writers of a process may queue for a lock in Redis: who is next, and some in case that one leaves.
const doorWidth = 4

// readersWidth is how many impatient readers of a process may do so.
const readersWidth = 64

// Locker hands out read-write locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	life    *lifecycle.Lender[*Lease]
	redis   *link.Sender
	rdb     Redis // of SelfCheck
	cfg     Config
	writers queue.Doors
	readers queue.Doors // those that are impatient
	inbox   *wake.Inbox
	keeper  *lease.Keeper
	acks    *replicas.Sender // nil: no replica has to acknowledge anything
	leave   func()           // gives up the inbox and the keeper
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	if err := errors.Join(config.CheckClient(rdb), cfg.check(), replicas.Check(rdb, cfg.Replicas)); err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	cfg = cfg.withDefaults()
	k := &Locker{life: lifecycle.NewLender((*Lease).abort), rdb: rdb, cfg: cfg}
	k.redis = link.NewSender(rdb, cfg.RedisTimeout, k.life.Life)
	k.acks = replicas.New(rdb, cfg.Replicas, cfg.RedisTimeout, k.life)
	roundTrip := func(name string) time.Duration { return k.redis.RoundTrip(keys.Tagged(cfg.Prefix, name)) }
	k.writers = queue.Doors{Width: doorWidth, RoundTrip: roundTrip}
	k.readers = queue.Doors{Width: readersWidth, RoundTrip: roundTrip, Shared: true}
	inbox, leaveInbox := wake.Open(rdb, cfg.Prefix)
	keeper, leaveKeeper := lease.Open(rdb, cfg.RedisTimeout)
	k.inbox, k.keeper = inbox, keeper
	k.leave = func() {
		leaveInbox()
		leaveKeeper()
	}
	return k, nil
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything that the
// Locker started has ended; when Redis hangs, that takes the client's time-outs. Waiting calls return ErrClosed. The
// function given to Do or RDo must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error {
	if k == nil {
		return nil // New failed: there is nothing to close
	}
	k.life.Close(ErrClosed)
	k.redis.Close()
	k.leave()
	return nil
}

// begin begins a call on the lock of the name. Each nil is followed by one k.life.Done.
func (k *Locker) begin(name string) error {
	switch {
	case k == nil:
		return errNilLocker
	case name == "":
		return errEmptyName
	case !k.life.Begin():
		return ErrClosed
	}
	return nil
}
