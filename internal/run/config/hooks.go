package config

import (
	"context"
	"time"
)

// Hooks are the Hooks of all locks, and documented there.
type Hooks struct {
	Begin    func(ctx context.Context, call, name string) func(error)
	OnLock   func(name string, took time.Duration, err error)
	OnUnlock func(name string, held time.Duration, err error)
}

// Ask is called at the beginning of a call that asks for a lock, and Asking.End at its end.
func (h Hooks) Ask(ctx context.Context, call, name string) Asking {
	a := Asking{onLock: h.OnLock, name: name, began: time.Now()}
	if h.Begin != nil {
		a.end = h.Begin(ctx, call, name)
	}
	return a
}

// Asking is a call that asks for a lock.
type Asking struct {
	end    func(error) // from Begin; nil: nothing
	onLock func(name string, took time.Duration, err error)
	name   string
	began  time.Time
}

// End reports the error of the call, or nil.
func (a Asking) End(err error) {
	if a.end != nil {
		a.end(err)
	}
	if a.onLock != nil {
		a.onLock(a.name, time.Since(a.began), err)
	}
}

// Held returns what is to be called when a lease that begins now is unlocked.
func (h Hooks) Held(name string) func(error) {
	if h.OnUnlock == nil {
		return func(error) {}
	}
	began := time.Now()
	return func(err error) { h.OnUnlock(name, time.Since(began), err) }
}
