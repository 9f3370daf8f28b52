package tier

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

const (
	sampled   = 16          // one Get in that many is counted
	rankEvery = time.Second // how often the hottest are determined anew, and the counts halved
	counters  = 4           // for each key that may be hot
	minCount  = 2           // of a hot key
)

// hot knows the keys that this process is asked for most, now, by a sample of its Gets. It has room for some, and keeps
// what is asked for often: a key that finds no room costs each of the others a credit, and keys without credit go
// (Misra, Gries: Finding Repeated Elements, Science of Computer Programming 2, 1982). So a key stays if it has more
// than its share of the Gets. Use newHot.
type hot struct {
	size  int
	clock clock.Clock

	mu   sync.Mutex
	of   map[string]counter
	next time.Time // when they are to be ranked

	top atomic.Pointer[map[string]bool] // the map does not change
}

type counter struct{ seen, credit int }

// newHot is for that many keys.
func newHot(size int, c clock.Clock) *hot {
	h := &hot{size: size, clock: c, of: make(map[string]counter), next: c.Now().Add(rankEvery)}
	h.top.Store(new(map[string]bool))
	return h
}

// note sees one Get of the key. It costs a few nanoseconds, and never waits: while others are being counted, a Get is
// left out.
func (h *hot) note(key string) {
	if rand.Uint32()%sampled == 0 && h.mu.TryLock() {
		defer h.mu.Unlock()
		h.countLocked(key)
	}
}

func (h *hot) countLocked(key string) {
	if n, known := h.of[key]; known || len(h.of) < counters*h.size {
		h.of[key] = counter{n.seen + 1, n.credit + 1}
	} else {
		for key, n := range h.of {
			if n.credit--; n.credit > 0 {
				h.of[key] = n
			} else {
				delete(h.of, key)
			}
		}
	}
	if now := h.clock.Now(); now.After(h.next) {
		h.next = now.Add(rankEvery)
		h.rankLocked()
	}
}

// rankLocked determines the hottest keys, and halves all counts, which keeps their order.
func (h *hot) rankLocked() {
	ranked := slices.SortedFunc(maps.Keys(h.of), func(a, b string) int { return cmp.Compare(h.of[b].seen, h.of[a].seen) })
	top := make(map[string]bool, h.size)
	for _, key := range ranked[:min(h.size, len(ranked))] {
		if h.of[key].seen >= minCount {
			top[key] = true
		}
	}
	h.top.Store(&top)
	for key, n := range h.of {
		h.of[key] = counter{n.seen / 2, n.credit / 2}
	}
}

// has reports whether the key is among the hottest.
func (h *hot) has(key string) bool { return (*h.top.Load())[key] }
