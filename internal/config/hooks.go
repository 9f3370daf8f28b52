package config

import "time"

// Hooks are those of all locks, and documented there.
type Hooks struct {
	OnLock   func(name string, took time.Duration, err error)
	OnUnlock func(name string, held time.Duration, err error)
}

// Asked is called at the end of a call that asked for a lock.
func (h Hooks) Asked(name string, began time.Time, err error) {
	if h.OnLock != nil {
		h.OnLock(name, time.Since(began), err)
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
