// Package lately remembers which keys this process was asked for, and when: what will probably be asked for again.
package lately

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

const (
	most   = 1 << 16 // keys
	coarse = 16      // a time is noted anew when this share of how long it counts is over: else callers of a hot key would write to one place all the time
)

// Keys are the keys of a kind, each with what knows how to load it. Use New; nobody asks for nil Keys.
type Keys[T any] struct {
	clock clock.Clock
	of    sync.Map // by key: of *asked
	count atomic.Int64
}

// asked is a key that was asked for.
type asked[T any] struct {
	what   T
	counts time.Duration
	at     atomic.Int64 // when, as Unix time in ns
}

// New returns Keys that were not asked for.
func New[T any](c clock.Clock) *Keys[T] { return &Keys[T]{clock: c} }

// Touch notes that the key is asked for, and reports whether it is known.
func (k *Keys[T]) Touch(key string) bool {
	a := k.find(key)
	if a != nil {
		if now := k.clock.Now().UnixNano(); now-a.at.Load() > int64(a.counts/coarse) {
			a.at.Store(now)
		}
	}
	return a != nil
}

// Add notes that the key is asked for, which counts for that time.
func (k *Keys[T]) Add(key string, counts time.Duration, what T) {
	a := &asked[T]{what: what, counts: counts}
	a.at.Store(k.clock.Now().UnixNano())
	if _, known := k.of.LoadOrStore(key, a); !known && k.count.Add(1) > most {
		k.of.Clear() // what is hot is asked for again at once
		k.count.Store(0)
	}
}

func (k *Keys[T]) find(key string) *asked[T] {
	found, _ := k.of.Load(key)
	a, _ := found.(*asked[T])
	return a
}

// All are the keys that were asked for lately.
func (k *Keys[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		if k == nil {
			return
		}
		k.of.Range(func(key, _ any) bool {
			what, ok := k.Asked(key.(string)) //nolint:forcetypeassert // nothing else is stored
			return !ok || yield(key.(string), what)
		})
	}
}

// Asked returns what knows how to load the key, if it was asked for lately.
func (k *Keys[T]) Asked(key string) (what T, ok bool) {
	if k == nil {
		return what, false
	}
	a := k.find(key)
	if a == nil || k.clock.Now().UnixNano()-a.at.Load() > int64(a.counts+a.counts/coarse) {
		return what, false
	}
	return a.what, true
}
