package terms

import "time"

// Hooks are those of all locks, and documented there.
type Hooks struct {
	OnLock   func(name string, took time.Duration, err error)
	OnUnlock func(name string, held time.Duration, err error)
}

// Asked returns what is to be called at the end of a call that asks for a lock from now on.
func (h Hooks) Asked(name string, err *error) func() {
	if h.OnLock == nil {
		return func() {}
	}
	start := time.Now()
	return func() { h.OnLock(name, time.Since(start), *err) }
}

// Held returns what is to be called when a lease that begins now is unlocked.
func (h Hooks) Held(name string) func(error) {
	if h.OnUnlock == nil {
		return func(error) {}
	}
	began := time.Now()
	return func(err error) { h.OnUnlock(name, time.Since(began), err) }
}
