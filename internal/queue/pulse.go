package queue

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/lease"
)

// pulse is the heartbeats of a waiter from one answer to the next. A nil pulse does not beat.
type pulse struct {
	heard atomic.Pointer[time.Time] // before the last beat that was answered with 1 was sent; nil: none was
	ask   chan struct{}             // size 1: the waiter has to ask
	drop  func()
}

// begin begins to send heartbeats after an answer, if there is a keeper to do so.
func (w *Waiter) begin(answered time.Time) *pulse {
	if w.Keeper == nil {
		return nil
	}
	p := &pulse{ask: make(chan struct{}, 1)}
	p.drop = w.Keeper.Keep(&lease.Renewal{
		Call:  w.Beat(),
		TTL:   w.Grace,
		First: answered.Add(w.heartbeat()),
		Kept:  func(sent time.Time) { p.heard.Store(&sent) },
		Lost:  func(int) { p.ask <- struct{}{} }, // size 1, and called once
	})
	return p
}

func (p *pulse) stop() {
	if p != nil {
		p.drop()
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
