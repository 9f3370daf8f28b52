package hottest

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

const (
	sampled = 16      // one Get in that many is counted
	longest = 1 << 10 // bytes of a key that is counted where nothing else keeps it: counters do
)

// counts counts which keys a sample of Gets asks for. It has room for some, and keeps what is asked for often: a key that finds no room costs each of
// the others a credit, and keys without credit go (Misra, Gries: Finding Repeated Elements, Science of Computer Programming 2, 1982). So a key stays
// if it has more than its share of the Gets. Its count is how often it was seen since it came, never more.
type counts struct {
	room  int
	every time.Duration // how often turn is called, while keys are asked for
	turn  func(now time.Time)
	clock clock.Clock

	mu   sync.Mutex
	of   map[string]counter // nil: closed
	next time.Time          // when turn is due
}

type counter struct{ seen, credit int }

// note sees one Get of the key. It costs a few nanoseconds, and never waits: while others are being counted, a Get is left out.
func (c *counts) note(key string) {
	if rand.Uint32()%sampled == 0 && c.mu.TryLock() {
		defer c.mu.Unlock()
		c.countLocked(key)
	}
}

func (c *counts) countLocked(key string) {
	if c.of == nil {
		return
	}
	if n, known := c.of[key]; known || len(c.of) < c.room {
		c.of[key] = counter{n.seen + 1, n.credit + 1}
	} else {
		for key, n := range c.of {
			if n.credit--; n.credit > 0 {
				c.of[key] = n
			} else {
				delete(c.of, key)
			}
		}
	}
	if now := c.clock.Now(); now.After(c.next) {
		c.next = now.Add(c.every)
		c.turn(now)
	}
}

// seenLocked are the keys that were seen so often, at least.
func (c *counts) seenLocked(least int) map[string]int {
	seen := make(map[string]int)
	for key, n := range c.of {
		if n.seen >= least {
			seen[key] = n.seen
		}
	}
	return seen
}

// ranked are the n keys with the highest counts, the highest first.
func ranked(counts map[string]int, n int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return keys[:min(n, len(keys))]
}
