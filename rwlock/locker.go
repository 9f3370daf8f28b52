package rwlock

import (
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/life"
	"github.com/cacheguard/go/internal/terms"
	"github.com/cacheguard/go/internal/wake"
)

// Locker hands out read-write locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	life   *life.Life[*Lease]
	rdb    Redis
	cfg    Config
	inbox  *wake.Inbox
	keeper *lease.Keeper
	leave  func() // gives up the inbox and the keeper
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	if err := errors.Join(terms.CheckClient(rdb), cfg.check()); err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	cfg = cfg.withDefaults()
	k := &Locker{life: life.New((*Lease).abort), rdb: rdb, cfg: cfg}
	inbox, leaveInbox := wake.Open(rdb)
	keeper, leaveKeeper := lease.Open(rdb, cfg.RedisTimeout)
	k.inbox, k.keeper = inbox, keeper
	k.leave = func() {
		leaveInbox()
		leaveKeeper()
	}
	return k, nil
}

// Close ends the contexts of all leases of the Locker with ErrClosed, unlocks them, and returns when everything the Locker
// started has ended; when Redis hangs, that takes the client's time-outs. Calls that wait return ErrClosed. The function
// given to Do or RDo must not call it. Close may be called more than once, and always returns nil.
func (k *Locker) Close() error {
	if k == nil {
		return nil // New failed: there is nothing to close
	}
	k.life.Close(ErrClosed, k.leave)
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
