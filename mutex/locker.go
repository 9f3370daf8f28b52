package mutex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/detach"
	"github.com/cacheguard/go/internal/hold"
	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/wake"
)

// Locker hands out locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	rdb    Redis
	cfg    Config
	redis  *detach.Runner
	lines  lines
	inbox  *wake.Inbox
	keeper *lease.Keeper
	leave  func() // gives up the inbox and the keeper

	ending context.Context //nolint:containedctx // the life of the Locker, ended by end
	end    context.CancelCauseFunc
	listen sync.Once      // to revocations
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
		return nil, fmt.Errorf("mutex: %w", err)
	}
	cfg = cfg.withDefaults()
	k := &Locker{rdb: rdb, cfg: cfg, redis: detach.NewRunner(rdb, cfg.RedisTimeout), leases: make(map[*Lease]struct{})}
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
// started has ended; when Redis hangs, that takes the client's time-outs. Calls that wait return ErrClosed. Close may be
// called more than once, and always returns nil.
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
		k.listen.Do(func() {})
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
func (k *Locker) begin(names ...string) error {
	if k == nil {
		return errNilLocker
	}
	for _, name := range names {
		if name == "" {
			return errEmptyName
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return ErrClosed
	}
	k.calls.Add(1)
	return nil
}

// start makes the process reachable for messages, when it first needs that. It does not wait for it.
func (k *Locker) start() {
	k.listen.Do(func() {
		k.inbox.Start()
		stop := k.inbox.Notify(k.cfg.Prefix, k.revoked)
		leave := k.leave
		k.leave = func() {
			stop()
			leave()
		}
	})
}

// revoked is called when a lock was taken away from the token.
func (k *Locker) revoked(token string) {
	var hit []*Lease
	k.mu.Lock()
	for l := range k.leases {
		if l.who.token == token {
			hit = append(hit, l)
		}
	}
	k.mu.Unlock()
	for _, l := range hit {
		l.hold.Lose(ErrRevoked)
	}
}

// wait asks Redis for the lock until it has it. The context's error says why it did not get it; another one is Redis'.
func (k *Locker) wait(ctx context.Context, w who) (queue.Grant, error) {
	waiter := queue.Waiter{
		Inbox: k.inbox, ID: w.id, Grace: queue.Grace(k.cfg.TTL), Patience: k.cfg.TTL, Ended: k.ending,
		Ask: func(ctx context.Context, inbox string) (queue.Answer, error) {
			return k.ask(ctx, w, queue.Grace(k.cfg.TTL), inbox)
		},
		Parse: parseGrant,
	}
	for {
		g, err := waiter.Wait(ctx)
		if err != nil || !g.Short || k.cfg.Watchdog != off {
			return g, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// ask asks Redis for the lock once. The reply to a request that was given up may come when w has the lock by another one,
// or still waits; only if it does neither, what was granted is given back.
func (k *Locker) ask(ctx context.Context, w who, grace time.Duration, inbox string) (queue.Answer, error) {
	return detach.Run(ctx, &k.tasks, k.redis, func(ctx context.Context, rdb script.Processor) (queue.Answer, error) {
		return w.ask(ctx, rdb, k.cfg.TTL, grace, inbox)
	}, func(queue.Answer, error) {
		if w.left.Load() {
			k.giveUp(w)
		}
	})
}

// giveUp gives back what the holder or waiter may have in Redis, whatever became of the context.
func (k *Locker) giveUp(w who) {
	ctx, cancel := context.WithTimeout(context.Background(), k.cfg.RedisTimeout)
	defer cancel()
	_, _ = w.release(ctx, k.rdb, heir{}) // if this fails too, the lease expires
}

// abandon gives up in the background. Only calls that have begun may do so.
func (k *Locker) abandon(w who) {
	w.left.Store(true)
	k.tasks.Go(func() { k.giveUp(w) }) // owner: the Locker; stop: RedisTimeout and the client's time-outs; joined by Close
}

// terms are how the holder keeps its lease.
func (k *Locker) terms(w who, onLost func()) hold.Terms {
	t := hold.Terms{Renew: w.renewal(k.cfg.TTL, 0), TTL: k.cfg.TTL, Max: k.cfg.MaxHold, Cause: lost, Lost: onLost}
	if k.cfg.Watchdog != off {
		t.Keeper = k.keeper
	}
	return t
}
