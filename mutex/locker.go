package mutex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/hold"
	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/queue"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/terms"
	"github.com/cacheguard/go/internal/wake"
)

// doorWidth is how many callers of a process may queue for a fair lock in Redis: who is next, and some in case that one leaves.
const doorWidth = 4

// Locker hands out locks that are kept in Redis. It is safe for concurrent use.
type Locker struct {
	life   *lifecycle.Lender[*Lease]
	redis  *link.Sender
	rdb    Redis // of SelfCheck
	cfg    Config
	lines  lines       // of locks that are not fair
	doors  queue.Doors // of those that are
	inbox  *wake.Inbox
	keeper *lease.Keeper
	leave  func()    // gives up the inbox and the keeper
	listen sync.Once // to revocations
	deaf   func()    // undoes listen
}

// New returns a Locker. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range.
func New(rdb Redis, cfg Config) (*Locker, error) {
	if err := errors.Join(terms.CheckClient(rdb), cfg.check()); err != nil {
		return nil, fmt.Errorf("mutex: %w", err)
	}
	cfg = cfg.withDefaults()
	k := &Locker{life: lifecycle.NewLender((*Lease).abort), rdb: rdb, cfg: cfg, deaf: func() {}}
	k.redis = link.NewSender(rdb, cfg.RedisTimeout, k.life.Life)
	k.lines.roundTrip = func(name string) time.Duration { return k.redis.RoundTrip(lockKey(cfg.Prefix, name)) }
	k.doors = queue.Doors{Width: doorWidth, RoundTrip: k.lines.roundTrip}
	inbox, leaveInbox := wake.Open(rdb, cfg.Prefix)
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
	k.life.Close(ErrClosed)
	k.redis.Close()
	k.listen.Do(func() {})
	k.deaf()
	k.leave()
	return nil
}

func (k *Locker) begin(name string) error {
	if k == nil {
		return errNilLocker
	}
	return begin(k.life, name)
}

// begin begins a call on the lock of the name. Each nil is followed by one Done.
func begin(life *lifecycle.Lender[*Lease], name string) error {
	switch {
	case name == "":
		return errEmptyName
	case !life.Begin():
		return ErrClosed
	}
	return nil
}

// start makes the process reachable for messages, when it first needs that. It does not wait for it.
func (k *Locker) start() {
	k.listen.Do(func() {
		k.inbox.Start()
		k.deaf = k.inbox.Notify(k.cfg.Prefix, k.revoked)
	})
}

// revoked is called when a lock was taken away from the token.
func (k *Locker) revoked(token string) {
	for _, l := range k.life.Held() {
		if l.who.token == token {
			l.hold.Lose(ErrRevoked)
		}
	}
}

// wait asks Redis for the lock until it has it. The context's error says why it did not get it; another one is Redis'.
func (k *Locker) wait(ctx context.Context, w who, g *queue.Guest) (queue.Grant, error) {
	grace := queue.Grace(k.cfg.TTL)
	answered := int64(0) // the fence of the last answer
	waiter := queue.Waiter{
		Inbox: k.inbox, ID: w.id, Grace: grace, Patience: k.cfg.TTL, Ended: k.life.Ending,
		Ask: func(ctx context.Context, inbox string) (queue.Answer, error) {
			answer, err := k.ask(ctx, w, grace, inbox)
			if err == nil {
				answered = answer.Fence
				g.Answered(answer.Sent, answer.Clock)
			}
			return answer, err
		},
		Parse: func(body string) (fence int64, granted bool) { return parseGrant(body, answered) },
	}
	for {
		g, err := waiter.Wait(ctx)
		if err != nil || !g.Short || k.cfg.Watchdog != off {
			return g, err
		}
		// A fixed lease has its whole length from the beginning, so ask once more, which confirms it.
	}
}

// ask asks Redis for the lock once. What it was not asked for any more is given back by abandon.
func (k *Locker) ask(ctx context.Context, w who, grace time.Duration, inbox string) (queue.Answer, error) {
	patience := queue.PatienceOf(ctx, k.redis.RoundTrip(w.keys[0]))
	reply, err := k.redis.Ask(ctx, w.asking(k.cfg.TTL, grace, patience, inbox), w.trail)
	if err != nil {
		return queue.Answer{}, err
	}
	answer, err := parseAnswer(reply.Cmd, k.cfg.TTL)
	answer.Sent = reply.Sent
	return answer, err
}

// abandon gives up in the background what w may have in Redis. Only what the life counts may do so.
func (k *Locker) abandon(w who) {
	k.redis.Leave(w.trail, func(lost bool) script.Call { return w.releasing(heir{}, lost) }, k.cfg.TTL)
}

// granted returns the lease of w, unless that was over before it could begin.
func (k *Locker) granted(ctx context.Context, name string, w who, line *line, g queue.Grant) (*Lease, error) {
	l := k.newLease(ctx, name, w, line, g)
	if l.Context().Err() == nil {
		return l, nil
	}
	k.abandon(w)
	return nil, tooLate(name, context.Cause(l.Context()))
}

func (k *Locker) newLease(ctx context.Context, name string, w who, line *line, g queue.Grant) *Lease {
	l := &Lease{from: k, life: k.life, who: w, name: name, line: line, fence: g.Fence, unlocked: k.cfg.Hooks.terms().Held(name)}
	held := hold.Terms{
		Renew: w.renewal(k.cfg.TTL, 0), TTL: k.cfg.TTL, Max: k.cfg.MaxHold, Cause: lost,
		Lost: func() {
			line.vacate()
			k.life.Remove(l)
		},
	}
	if k.cfg.Watchdog != off {
		held.Keeper = k.keeper
	}
	k.life.Add(l, func() { l.hold = hold.Begin(ctx, held, g.Sent, g.Length) })
	return l
}
