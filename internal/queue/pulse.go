package queue

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/wake"
)

// pulse is the heartbeats of a waiter from one answer to the next. A nil pulse does not beat.
type pulse struct {
	heard atomic.Pointer[time.Time] // before the last beat that was answered well was sent; nil: none was
	ask   chan struct{}             // size 1: the waiter has to ask
	soon  *time.Timer               // sets it off when the last beat said that it may be worth it
	drop  func()
}

// begin begins to send heartbeats after an answer, if there is a keeper to do so.
func (w *Waiter) begin(answered time.Time) *pulse {
	if w.Keeper == nil {
		return nil
	}
	p := &pulse{ask: make(chan struct{}, 1)}
	p.soon = time.AfterFunc(time.Hour, p.set)
	p.soon.Stop()
	p.drop = w.Keeper.Keep(&lease.Renewal{
		Call:  w.Beat(),
		TTL:   w.Grace,
		First: answered.Add(w.heartbeat()),
		Kept: func(sent time.Time, left int) {
			p.heard.Store(&sent)
			p.soon.Reset(wake.Patience(time.Duration(left)*time.Millisecond, true, 0))
		},
		Lost: func(int) { p.set() },
	})
	return p
}

// set has the waiter ask.
func (p *pulse) set() {
	select {
	case p.ask <- struct{}{}:
	default: // it is about to
	}
}

func (p *pulse) stop() {
	if p != nil {
		p.drop()
		p.soon.Stop()
	}
}

func (p *pulse) asks() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.ask
}

// answered is when the last request was sent that was answered.
func (p *pulse) answered(before time.Time) time.Time {
	if p == nil {
		return before
	}
	if heard := p.heard.Load(); heard != nil {
		return *heard
	}
	return before
}
