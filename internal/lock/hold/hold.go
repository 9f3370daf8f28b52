// Package hold is the holder's side of a lease on a lock: a context that ends when the lease can no longer be trusted.
//
// The holder measures its trust on its own monotonic clock, from before it sent the last request that Redis granted:
// Redis began to count the lease later than that. So the trust ends no later than the lease, even when Redis cannot
// be reached or the process was paused. The keeper (package lease) renews the lease and pushes the end of the trust
// forward; a renewal that is refused ends the trust at once, and nothing brings it back.
//
// A hold has no goroutine, and a timer only when it needs one: a lease that is renewed cannot end before its first
// renewal is due. (A timer that is set on an idle processor wakes a thread, which costs as much as a request to Redis.)
package hold

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
)

// Holder is who holds a lease.
type Holder interface {
	// Renewal is the call that extends the lease: it returns 1 when it did, by TTL, and another number when the lease
	// is lost.
	Renewal() script.Call
	// Cause is why the lease is lost: what the call returned, or 0 when its time has passed.
	Cause(reply int) error
	// Lost is called once the hold is lost, after its context was cancelled.
	Lost()
}

// Options say how a lease is held.
type Options struct {
	Holder Holder
	Keeper *lease.Keeper // renews the lease; nil: it is fixed
	TTL    time.Duration // from a renewal

	// Replicas is how many of them have to acknowledge a renewal, or it does not count.
	Replicas int

	Max time.Duration // the hold ends this long after it began, whatever the renewals say; 0: no limit
}

// Hold is a lease that is held. It is used after Begin.
type Hold struct {
	options Options
	values  context.Context //nolint:containedctx // values only
	ctx     context.Context //nolint:containedctx // what the hold is for
	cancel  context.CancelCauseFunc
	renewal lease.Renewal
	began   time.Time // when its lease was asked for
	last    time.Time // the hold ends here at the latest; zero: no limit

	mu    sync.Mutex
	until time.Time
	over  bool
	timer *time.Timer // nil until it is needed
}

// Begin begins a hold on a lease of the given length, granted to a request that was sent at sent or later. Its context
// has ctx's values, not its cancellation. The caller calls End.
func (h *Hold) Begin(ctx context.Context, options Options, sent time.Time, length time.Duration) {
	h.options, h.values, h.began = options, ctx, sent
	h.ctx, h.cancel = context.WithCancelCause((*valued)(h))
	if options.Max > 0 {
		h.last = time.Now().Add(options.Max)
	}
	h.mu.Lock()
	defer h.mu.Unlock() // the timer and the keeper may be quick
	h.until = h.capped(sent.Add(length))
	if options.Keeper == nil {
		h.armLocked()
	} else {
		h.renewal = lease.Renewal{Lease: (*renewed)(h), TTL: options.TTL, First: sent.Add(length / 3), Replicas: options.Replicas}
		options.Keeper.Keep(&h.renewal)
	}
}

// valued is a context with the values of the one that the lock was asked for with, which never ends.
type valued Hold

func (*valued) Deadline() (end time.Time, ok bool) { return end, false }
func (*valued) Done() <-chan struct{}              { return nil }
func (*valued) Err() error                         { return nil }
func (v *valued) Value(key any) any                { return v.values.Value(key) }

// renewed is a Hold as its keeper sees it.
type renewed Hold

func (r *renewed) Due() script.Call {
	(*Hold)(r).arm()
	return r.options.Holder.Renewal()
}

func (r *renewed) Kept(sent time.Time, _ int) { (*Hold)(r).kept(sent) }
func (r *renewed) Lost(reply int)             { (*Hold)(r).Lose(r.options.Holder.Cause(reply)) }

// Context ends when the lease is lost, with the cause, and when the hold ends. Its Err looks at the clock: the timer of
// a process that was stopped may be late.
func (h *Hold) Context() context.Context { return (*timely)(h) }

// Never is the context of a hold that there never was, and why.
func Never(why error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	return ctx
}

// timely is the context of a hold.
type timely Hold

func (c *timely) Deadline() (time.Time, bool) { return c.ctx.Deadline() }
func (c *timely) Done() <-chan struct{}       { return c.ctx.Done() }
func (c *timely) Value(key any) any           { return c.ctx.Value(key) }

func (c *timely) Err() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	(*Hold)(c).expire()
	return c.ctx.Err()
}

// Within returns a context that ends with ctx, and with the hold, whose cause it has then; and at the end of the hold's
// trust its Err says so at once.
func (h *Hold) Within(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return within{ctx, h, cancel}, func() {
		unhook()
		cancel(nil)
	}
}

type within struct {
	context.Context //nolint:containedctx // it is one

	hold   *Hold
	cancel context.CancelCauseFunc
}

func (c within) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.hold.Context().Err() != nil {
		c.cancel(context.Cause(c.hold.ctx))
	}
	return c.Context.Err()
}

// TrustedUntil is when the context ends unless the lease is renewed.
func (h *Hold) TrustedUntil() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// Began is when the lease was asked for.
func (h *Hold) Began() time.Time { return h.began }

// Answered takes in the reply to a Renew that the holder sent by itself, and returns why the lease is lost, if it is.
func (h *Hold) Answered(sent time.Time, reply int) error {
	if reply == 1 {
		h.kept(sent)
	} else {
		h.Lose(h.options.Holder.Cause(reply))
	}
	return context.Cause(h.ctx)
}

// Lose ends the trust, with its cause.
func (h *Hold) Lose(cause error) {
	if h.finish(cause) {
		h.options.Holder.Lost()
	}
}

// End ends the hold by the holder's wish: the lease is not renewed any more, and the context is cancelled. It returns
// why the lease was lost before; nil: it was trusted until now. As Err of the context, it looks at the clock.
func (h *Hold) End() (lost error) {
	if h.expire(); !h.finish(context.Canceled) {
		lost = context.Cause(h.ctx)
	}
	return lost
}

func (h *Hold) finish(cause error) bool {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return false
	}
	h.over = true
	if h.timer != nil {
		h.timer.Stop()
	}
	h.cancel(cause) // with the mutex, or somebody who finds it over would find the context alive
	h.mu.Unlock()
	if h.options.Keeper != nil {
		h.options.Keeper.Drop(&h.renewal)
	}
	return true
}

// kept pushes the end of the trust forward. A lost lease stays lost.
func (h *Hold) kept(sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.capped(sent.Add(h.options.TTL))
	if h.over || !until.After(h.until) {
		return
	}
	h.until = until
	h.armLocked()
}

// arm makes sure that the hold ends in time.
func (h *Hold) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over && h.timer == nil {
		h.armLocked()
	}
}

func (h *Hold) armLocked() {
	if h.timer == nil {
		h.timer = time.AfterFunc(time.Until(h.until), h.expire)
	} else {
		h.timer.Reset(time.Until(h.until))
	}
}

func (h *Hold) capped(until time.Time) time.Time {
	if !h.last.IsZero() && until.After(h.last) {
		return h.last
	}
	return until
}

// expire is called by the timer, perhaps a moment after the trust was extended, and by every call that wants to know.
func (h *Hold) expire() {
	h.mu.Lock()
	early := time.Now().Before(h.until)
	h.mu.Unlock()
	if !early {
		h.Lose(h.options.Holder.Cause(0))
	}
}
