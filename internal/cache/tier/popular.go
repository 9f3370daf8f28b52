package tier

import (
	"cmp"
	"slices"

	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/observe"
)

// longestHot is how many bytes a key may have to be counted: counters keep their keys.
const longestHot = 1 << 10

// HotKeys counts which keys are asked for most, as a tier does for its own use.
type HotKeys struct{ keys *hotKeys }

// NewHotKeys returns counters for that many keys.
func NewHotKeys(size int, c clock.Clock) *HotKeys { return &HotKeys{newHotKeys(size, c)} }

// Note sees a Get of the key. It costs a few nanoseconds, and never waits.
func (h *HotKeys) Note(key string) {
	if len(key) <= longestHot {
		h.keys.note(key)
	}
}

// shownCount is how often a key must have been counted to be shown: of fewer, one more or less by chance makes another key the hottest. That is about
// 64 to 128 Gets a second.
const shownCount = 8

// Top returns the hottest keys, the hottest one first. Keys that only chance makes look hot are not among them.
func (h *HotKeys) Top() []observe.HotKey { return h.keys.rates() }

// forgotten is after how many halvings no count is left.
const forgotten = 32

// rates are about how often the hottest keys are asked for. A key that is asked for steadily has been counted for two seconds just
// before the counts are halved, and for one second just after.
func (h *hotKeys) rates() []observe.HotKey {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	for n := 0; now.After(h.next) && n < forgotten; n++ { // they were not while nobody asked
		h.next = h.next.Add(rankEvery)
		h.rankLocked()
	}
	if now.After(h.next) {
		h.next = now.Add(rankEvery)
	}
	counted := 1 + (rankEvery-h.next.Sub(now)).Seconds()/rankEvery.Seconds()
	var hottest []observe.HotKey
	for _, c := range h.least {
		if n := c.count - c.foreign; n >= shownCount {
			hottest = append(hottest, observe.HotKey{Key: c.key, PerSecond: float64(n) * sampled / counted})
		}
	}
	slices.SortFunc(hottest, func(a, b observe.HotKey) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Key, b.Key))
	})
	return hottest[:min(h.size, len(hottest))]
}
