package report

import (
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/hottest"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/observe"
)

// mostShown is how many hot keys package admin shows.
const mostShown = 16

// Observer counts for package admin. A Guard has one once that has asked; before, a hit only loads a pointer. The methods of a nil
// Observer do nothing.
type Observer struct {
	Loads observe.Loads
	hot   *hottest.Ranking
}

// Observe returns the Observer, and makes it if there is none.
func (j *Journal) Observe() *Observer {
	j.Observer.CompareAndSwap(nil, &Observer{hot: hottest.NewRanking(mostShown, clock.Clock{})})
	return j.Observer.Load()
}

// Hot are the keys asked for most, first.
func (o *Observer) Hot() []observe.HotKey { return o.hot.Top() }

// Answered counts an answer.
func (o *Observer) Answered(t *observe.Tally, key string, word int) {
	t.Answers.Add(word)
	o.hot.NoteShort(key)
}

// LoadBegins notes that a loader begins to run, for LoadEnds; nil: nobody looks.
func (o *Observer) LoadBegins(key string, keys int) *observe.Load {
	if o == nil {
		return nil
	}
	return o.Loads.Begin(key, keys)
}

// LoadEnds notes how it ended.
func (o *Observer) LoadEnds(load *observe.Load, failed bool) {
	if load != nil {
		o.Loads.End(load, failed)
	}
}

// Loaded counts what a loader returned for a key.
func (o *Observer) Loaded(t *observe.Tally, took time.Duration, failed bool) {
	t.Loads.Add(1)
	t.Nanos.Add(uint64(max(took, 0)))
	if failed {
		t.Failed.Add(1)
	}
}

// Happened counts an event, if it is shown of each Cache.
func (o *Observer) Happened(t *observe.Tally, what What) {
	shown := map[What]*atomic.Uint64{
		Takeover: &t.Takeovers, LeaseLost: &t.LeasesLost, Damaged: &t.Damaged, Unread: &t.Damaged, Alien: &t.Damaged, Unstorable: &t.Unstorable, Outdated: &t.Outdated,
	}
	if n := shown[what]; n != nil {
		n.Add(1)
	}
}
