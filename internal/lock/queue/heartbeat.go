package queue

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/wake"
)

// heartbeat keeps a waiter alive from one answer to the next. A nil heartbeat does not beat.
type heartbeat struct {
	waiter  *Waiter
	renewal lease.Renewal
	heard   atomic.Pointer[time.Time] // before the last beat that was answered well was sent; nil: none was
	ask     chan struct{}             // size 1: the waiter has to ask
	soon    *time.Timer               // sets it off when the last beat said that it may be worth it
}

// begin begins to send heartbeats after an answer, if there is a keeper to do so.
func (w *Waiter) begin(answered time.Time) *heartbeat {
	if w.Keeper == nil {
		return nil
	}
	b := &heartbeat{waiter: w, ask: make(chan struct{}, 1)}
	b.soon = time.AfterFunc(time.Hour, b.set)
	b.soon.Stop()
	b.renewal = lease.Renewal{Lease: b, TTL: w.Grace, First: answered.Add(w.interval())}
	w.Keeper.Keep(&b.renewal)
	return b
}

// Due is called by the keeper, as what follows.
func (b *heartbeat) Due() script.Call { return b.waiter.Heart.Beat() }

// Kept notes when asking may be worth it.
func (b *heartbeat) Kept(sent time.Time, left int) {
	b.heard.Store(&sent)
	b.soon.Reset(wake.Patience(time.Duration(left)*time.Millisecond, true, 0))
}

// Lost makes the waiter ask.
func (b *heartbeat) Lost(int) { b.set() }

// set makes the waiter ask.
func (b *heartbeat) set() {
	select {
	case b.ask <- struct{}{}:
	default: // it is about to
	}
}

func (b *heartbeat) stop() {
	if b != nil {
		b.waiter.Keeper.Drop(&b.renewal)
		b.soon.Stop()
	}
}

func (b *heartbeat) asks() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.ask
}

// answered is when the last request was sent that was answered.
func (b *heartbeat) answered(before time.Time) time.Time {
	if b == nil {
		return before
	}
	if heard := b.heard.Load(); heard != nil {
		return *heard
	}
	return before
}
