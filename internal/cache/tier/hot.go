package tier

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
)

const (
	sampled   = 16          // one Get in that many is counted
	counters  = 4           // for each key that may be hot
	rankEvery = time.Second // how often the hottest are determined anew, and the counts halved
	minCount  = 2           // of a hot key
)

// hotKeys knows which keys are asked for most: Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of
// Frequent and Top-k Elements in Data Streams, ICDT 2005) on a sample, with counts that halve every second, so that the
// past is forgotten.
type hotKeys struct {
	size  int
	clock clock.Clock
	top   atomic.Pointer[map[string]struct{}] // the map does not change

	mu     sync.Mutex
	counts map[string]*counter
	least  leastFirst // the same counters
	next   time.Time  // when to rank again
}

// counter counts one key.
type counter struct {
	key     string
	count   int
	foreign int // how much of it may be other keys'
	index   int // in the heap
}

func newHotKeys(size int, c clock.Clock) *hotKeys {
	h := &hotKeys{size: size, clock: c, counts: make(map[string]*counter), next: c.Now().Add(rankEvery)}
	h.top.Store(new(map[string]struct{}))
	return h
}

// has reports whether the key is among the hottest.
func (h *hotKeys) has(key string) bool {
	_, hot := (*h.top.Load())[key]
	return hot
}

// note sees one Get of the key, and counts it if it is in the sample. While others are being counted or ranked it is
// left out: no Get waits for that.
func (h *hotKeys) note(key string) {
	if rand.Uint32()%sampled == 0 && h.mu.TryLock() {
		defer h.mu.Unlock()
		h.countLocked(key)
	}
}

func (h *hotKeys) countLocked(key string) {
	c := h.counts[key]
	switch {
	case c != nil:
		c.count++
		heap.Fix(&h.least, c.index)
	case len(h.least) < counters*h.size:
		c = &counter{key: key, count: 1}
		h.counts[key] = c
		heap.Push(&h.least, c)
	default: // the least counted key gives way, and its count is taken over
		c = h.least[0]
		delete(h.counts, c.key)
		c.key, c.foreign, c.count = key, c.count, c.count+1
		h.counts[key] = c
		heap.Fix(&h.least, 0)
	}
	if now := h.clock.Now(); now.After(h.next) {
		h.next = now.Add(rankEvery)
		h.rankLocked()
	}
}

// rankLocked determines the hottest keys, and halves all counts, which keeps their order.
func (h *hotKeys) rankLocked() {
	ranked := slices.Clone(h.least)
	slices.SortFunc(ranked, func(a, b *counter) int { return cmp.Compare(b.count-b.foreign, a.count-a.foreign) })
	ranked = ranked[:min(h.size, len(ranked))]
	top := make(map[string]struct{}, len(ranked))
	for _, c := range ranked {
		if c.count-c.foreign >= minCount {
			top[c.key] = struct{}{}
		}
	}
	h.top.Store(&top)
	for _, c := range h.least {
		c.count, c.foreign = c.count/2, c.foreign/2
	}
}

// leastFirst is a heap of counters.
type leastFirst []*counter

func (h leastFirst) Len() int           { return len(h) }
func (h leastFirst) Less(i, j int) bool { return h[i].count < h[j].count }
func (h leastFirst) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *leastFirst) Push(c any) {
	c.(*counter).index = len(*h)  //nolint:forcetypeassert // only counters are pushed
	*h = append(*h, c.(*counter)) //nolint:forcetypeassert // as above
}

func (h *leastFirst) Pop() any { // never called: counters only change their keys
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
