package hottest

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/observe"
)

const (
	rankEvery = time.Second // how often the hottest are determined anew, and the counts halved
	counters  = 4           // for each key that may be hot
	minCount  = 2           // of a hot key

	// shownCount is how often a key must have been counted to be shown: of fewer, one more or less by chance makes another key the hottest. That is
	// about 64 to 128 Gets a second.
	shownCount = 8

	// forgotten is after how many halvings no count is left.
	forgotten = 32
)

// Ranking knows the keys that this process is asked for most, now: the counts halve every second. Use NewRanking.
type Ranking struct {
	counts

	size int
	top  atomic.Pointer[map[string]int] // the map does not change
}

// NewRanking returns a Ranking of that many keys.
func NewRanking(size int, c clock.Clock) *Ranking {
	r := &Ranking{size: size}
	r.counts = counts{
		room: counters * size, every: rankEvery, turn: func(time.Time) { r.rankLocked() }, clock: c,
		of: make(map[string]counter), next: c.Now().Add(rankEvery),
	}
	r.top.Store(new(map[string]int))
	return r
}

// Note sees a Get of a key that is kept anyway.
func (r *Ranking) Note(key string) { r.note(key) }

// NoteShort is Note for a key that nothing else may keep: it leaves long ones out.
func (r *Ranking) NoteShort(key string) {
	if len(key) <= longest {
		r.note(key)
	}
}

// Has reports whether the key is among the hottest.
func (r *Ranking) Has(key string) bool {
	_, hot := (*r.top.Load())[key]
	return hot
}

// rankLocked determines the hottest keys, and halves all counts, which keeps their order.
func (r *Ranking) rankLocked() {
	top, seen := make(map[string]int, r.size), r.seenLocked(minCount)
	for _, key := range ranked(seen, r.size) {
		top[key] = seen[key]
	}
	r.top.Store(&top)
	for key, n := range r.of {
		r.of[key] = counter{n.seen / 2, n.credit / 2}
	}
}

// Top returns the hottest keys, the hottest one first, and about how often they are asked for. Keys that only chance makes look hot are not among them.
// A key that is asked for steadily has been counted for two seconds just before the counts are halved, and for one second just after.
func (r *Ranking) Top() []observe.HotKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	for n := 0; now.After(r.next) && n < forgotten; n++ { // they were not while nobody asked
		r.next = r.next.Add(rankEvery)
		r.rankLocked()
	}
	if now.After(r.next) {
		r.next = now.Add(rankEvery)
	}
	counted := 1 + (rankEvery-r.next.Sub(now)).Seconds()/rankEvery.Seconds()
	var hottest []observe.HotKey
	seen := r.seenLocked(shownCount)
	for _, key := range ranked(seen, r.size) {
		hottest = append(hottest, observe.HotKey{Key: key, PerSecond: float64(seen[key]) * sampled / counted})
	}
	return hottest
}
