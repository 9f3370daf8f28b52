package rwlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/wake"
)

// Locker hands out read-write locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	rdb    Redis
	cfg    Config
	inbox  *wake.Inbox
	keeper *lease.Keeper
	leave  func() // gives up the inbox and the keeper

	ending context.Context //nolint:containedctx // the life of the Locker, ended by end
	end    context.CancelCauseFunc
	tasks  sync.WaitGroup // operations, which may outlast the call that started them

	closing sync.Once
	mu      sync.Mutex
	closed  bool
	calls   sync.WaitGroup // calls under way; added to under mu, while not closed
	leases  map[*Lease]struct{}
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	if err := errors.Join(checkClient(rdb), cfg.check()); err != nil {
		return nil, fmt.Errorf("rwlock: %w", err)
	}
	cfg = cfg.withDefaults()
	k := &Locker{rdb: rdb, cfg: cfg, leases: make(map[*Lease]struct{})}
	k.ending, k.end = context.WithCancelCause(context.Background())
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
	k.closing.Do(func() {
		k.mu.Lock()
		k.closed = true
		k.mu.Unlock()
		k.end(ErrClosed)
		k.calls.Wait() // from here on there are no new leases
		k.unlockAll()
		k.tasks.Wait()
		k.leave()
	})
	return nil
}

func (k *Locker) unlockAll() {
	k.mu.Lock()
	var unlocking sync.WaitGroup
	for l := range k.leases {
		unlocking.Go(func() { // owner: Close; stop: RedisTimeout; joined below
			l.hold.Lose(ErrClosed)
			_ = l.Unlock(context.Background()) // if this fails, the lease expires
		})
	}
	k.mu.Unlock()
	unlocking.Wait()
}

// begin registers a call that Close waits for. Each nil is followed by one k.calls.Done.
func (k *Locker) begin(name string) error {
	switch {
	case k == nil:
		return errNilLocker
	case name == "":
		return errEmptyName
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return ErrClosed
	}
	k.calls.Add(1)
	return nil
}
