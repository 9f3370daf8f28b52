package admin

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	sampled   = 16              // one answer in that many is a sample
	window    = 2 * time.Second // how old samples may be
	mostHot   = 16              // keys that are shown
	longestOf = 1 << 10         // bytes of a key in a sample

	// shownHot is how many samples must be of a key that is shown: of fewer, one more or less by chance makes another key the hottest. That is
	// about 64 Gets a second.
	shownHot = 8
)

// hotKeys finds the keys that a Guard is asked for most, by its last samples.
type hotKeys struct {
	now func() time.Time

	mu      sync.Mutex
	samples [1 << 11]sampleOf // a ring
	next    int
}

// hotKey is a key that is asked for often.
type hotKey struct {
	key       string
	perSecond float64 // about
}

type sampleOf struct {
	key string
	at  time.Time
}

// note sees an answer. It costs a few nanoseconds, and never waits: while another is noted, one is left out.
func (h *hotKeys) note(key string) {
	if rand.Uint32()%sampled == 0 && len(key) <= longestOf && h.mu.TryLock() {
		defer h.mu.Unlock()
		h.addLocked(key)
	}
}

func (h *hotKeys) addLocked(key string) {
	h.samples[h.next] = sampleOf{key, h.now()}
	h.next = (h.next + 1) % len(h.samples)
}

// top are the hottest keys, the hottest one first, and about how often they are asked for.
func (h *hotKeys) top() (hottest []hotKey) {
	seen, over := h.lately()
	ranked := slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a, b)) })
	for _, key := range ranked[:min(mostHot, len(ranked))] {
		if n := seen[key]; n >= shownHot {
			hottest = append(hottest, hotKey{key: key, perSecond: float64(n) * sampled / over.Seconds()})
		}
	}
	return hottest
}

// lately are how many samples there are of each key, and what time they are of: less than the window if there were more than are kept.
func (h *hotKeys) lately() (seen map[string]int, over time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	seen, over = make(map[string]int), window
	if oldest := now.Sub(h.samples[h.next].at); oldest < window {
		over = max(oldest, time.Millisecond)
	}
	for _, s := range h.samples {
		if now.Sub(s.at) <= window {
			seen[s.key]++
		}
	}
	return seen, over
}
