package metrics

import (
	"errors"
	"time"

	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

// Mutex returns the Hooks of a mutex.Locker or mutex.Quorum, whose metrics have the label lock=name.
func (m *Metrics) Mutex(name string) mutex.Hooks {
	asked, unlocked := m.lock(name, mutex.ErrNotAcquired, mutex.ErrLeaseLost, mutex.ErrRevoked)
	return mutex.Hooks{OnLock: asked, OnUnlock: unlocked}
}

// RWLock returns the Hooks of a rwlock.Locker, whose metrics have the label lock=name. Reading and writing are counted
// together.
func (m *Metrics) RWLock(name string) rwlock.Hooks {
	asked, unlocked := m.lock(name, rwlock.ErrNotAcquired, rwlock.ErrLeaseLost, rwlock.ErrRevoked)
	return rwlock.Hooks{OnLock: asked, OnUnlock: unlocked}
}

// Semaphore returns the Hooks of a semaphore.Locker, whose metrics have the label lock=name.
func (m *Metrics) Semaphore(name string) semaphore.Hooks {
	asked, unlocked := m.lock(name, semaphore.ErrNotAcquired, semaphore.ErrLeaseLost, semaphore.ErrRevoked)
	return semaphore.Hooks{OnLock: asked, OnUnlock: unlocked}
}

// lock returns the two hooks of a lock with these errors.
func (m *Metrics) lock(name string, refused, leaseLost, revoked error) (asked, unlocked func(string, time.Duration, error)) {
	acquired, notAcquired, failed := m.lockWait.WithLabelValues(name, "acquired"),
		m.lockWait.WithLabelValues(name, "refused"), m.lockWait.WithLabelValues(name, "error")
	hold, lost := m.lockHold.WithLabelValues(name), m.locksLost.WithLabelValues(name)
	asked = func(_ string, took time.Duration, err error) {
		switch {
		case err == nil:
			acquired.Observe(took.Seconds())
		case errors.Is(err, refused):
			notAcquired.Observe(took.Seconds())
		default:
			failed.Observe(took.Seconds())
		}
	}
	unlocked = func(_ string, held time.Duration, err error) {
		hold.Observe(held.Seconds())
		if errors.Is(err, leaseLost) || errors.Is(err, revoked) {
			lost.Inc()
		}
	}
	return asked, unlocked
}
