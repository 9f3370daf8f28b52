package metrics

import (
	"errors"
	"time"

	"github.com/cacheguard/go/mutex"
)

// Lock returns the Hooks of a Locker or Quorum of any package of locks, whose metrics have the label lock=name. Reading and writing are counted
// together.
func (m *Metrics) Lock(name string) mutex.Hooks {
	asked, unlocked := m.lock(name)
	return mutex.Hooks{OnLock: asked, OnUnlock: unlocked}
}

// lock returns the two hooks of a lock.
func (m *Metrics) lock(name string) (asked, unlocked func(string, time.Duration, error)) {
	acquired, notAcquired, failed := m.lockWait.WithLabelValues(name, "acquired"),
		m.lockWait.WithLabelValues(name, "refused"), m.lockWait.WithLabelValues(name, "error")
	hold, lost := m.lockHold.WithLabelValues(name), m.locksLost.WithLabelValues(name)
	asked = func(_ string, took time.Duration, err error) {
		switch {
		case err == nil:
			acquired.Observe(took.Seconds())
		case errors.Is(err, mutex.ErrNotAcquired):
			notAcquired.Observe(took.Seconds())
		default:
			failed.Observe(took.Seconds())
		}
	}
	unlocked = func(_ string, held time.Duration, err error) {
		hold.Observe(held.Seconds())
		if errors.Is(err, mutex.ErrLeaseLost) || errors.Is(err, mutex.ErrRevoked) {
			lost.Inc()
		}
	}
	return asked, unlocked
}
