package admin

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/watch/observe"
)

// view counts what the page shows of a Guard. All Handlers of the Guard share one.
type view struct {
	loads loads
	hot   hotKeys
	kinds sync.Map // of names of Caches to *tally; empty: of keys without one
}

func newView(now func() time.Time) observe.Viewer { return &view{hot: hotKeys{now: now}} }

// tally is what is counted of a Cache. The zero tally is ready.
type tally struct {
	answers                                    observe.Counts
	loads, failed, nanos                       atomic.Uint64 // of loaders: runs, failed runs, and how long they took together
	takeovers, leasesLost, damaged, unstorable happening
}

// happening is what should not happen: how often it did, and when last, in ns since 1970. The time is stored first: who sees the count knows it.
type happening struct {
	last  atomic.Int64
	times atomic.Uint64
}

func (h *happening) note(at time.Time) {
	h.last.Store(at.UnixNano())
	h.times.Add(1)
}

func (h *happening) read() (was happened) {
	was.times = h.times.Load()
	was.last = h.last.Load()
	return was
}

// tallied is a tally at a time.
type tallied struct {
	answers                                    [observe.Words]uint64
	loads, failed, nanos                       uint64
	takeovers, leasesLost, damaged, unstorable happened
}

// happened is a happening at a time.
type happened struct {
	times uint64
	last  int64
}

// answered are what answers are counted as: outcomes, and what a call has without one.
var answered = []string{"hit", "local", "stale", "negative", "loaded", "shared", "bypassed", "error", "missed", "left"}

func (v *view) of(kind string) *tally {
	t, known := v.kinds.Load(kind)
	if !known {
		t, _ = v.kinds.LoadOrStore(kind, new(tally))
	}
	return t.(*tally) //nolint:forcetypeassert // nothing else is stored
}

// Answered counts an answer.
func (v *view) Answered(kind, key, outcome string) {
	v.of(kind).answers.Add(max(slices.Index(answered, outcome), 0))
	v.hot.note(key)
}

// Happened counts an event, if it is shown of each Cache.
func (v *view) Happened(kind, what string) {
	if h := v.of(kind).counts(what); h != nil {
		h.note(time.Now())
	}
}

// counts is what counts such events; nil: nothing.
func (t *tally) counts(what string) *happening {
	switch what {
	case "takeover":
		return &t.takeovers
	case "lease_lost":
		return &t.leasesLost
	case "damaged", "unread", "alien":
		return &t.damaged
	case "unstorable":
		return &t.unstorable
	}
	return nil
}

// Loading notes that a loader runs.
func (v *view) Loading(key string, keys int) (ended func(failed bool)) {
	load := v.loads.begin(key, keys)
	return func(failed bool) { v.loads.end(load, failed) }
}

// Loaded counts what a loader returned for a key.
func (v *view) Loaded(kind string, took time.Duration, failed bool) {
	t := v.of(kind)
	t.loads.Add(1)
	t.nanos.Add(uint64(max(took, 0)))
	if failed {
		t.failed.Add(1)
	}
}

// read reads what is counted of a Cache.
func (v *view) read(kind string) tallied {
	t := v.of(kind)
	return tallied{
		answers: t.answers.Sum(), loads: t.loads.Load(), failed: t.failed.Load(), nanos: t.nanos.Load(),
		takeovers: t.takeovers.read(), leasesLost: t.leasesLost.read(), damaged: t.damaged.read(), unstorable: t.unstorable.read(),
	}
}
