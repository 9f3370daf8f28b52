package middleware

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/watch/observe"
)

func init() { observe.Register((*Cache).observed) }

// tally counts how requests were answered, and why responses were not stored.
type tally struct {
	words, reasons []string // that requests are counted under
	results        observe.Counts
	passed         observe.Counts // of the results, by reason

	failed, faulty, unstored atomic.Pointer[last]

	turned atomic.Int64 // when next was noted, in nanoseconds
	mu     sync.Mutex
	since  observe.PagesCounted // guarded by mu, as is next: what was counted when the last minutes began
	next   observe.PagesCounted // the same, of the next time
}

// last is the last request that was answered like that: its path, and when.
type last struct {
	path string
	at   time.Time
}

// lately is its path; nil: it is over, as package admin has it.
func (l *last) lately(now time.Time) *string {
	if l == nil || now.Sub(l.at) >= observe.Recently {
		return nil
	}
	return &l.path
}

// window is how long the last minutes are at least; they are twice that at most.
const window = 2 * time.Minute

// observed is for package admin.
func (c *Cache) observed() observe.Pages {
	if c == nil {
		return observe.Pages{}
	}
	t := &tally{reasons: Reasons()}
	for _, r := range []Result{Hit, Stale, Loaded, Shared, Bypassed, Passed, Failed, Refused, Faulty} {
		t.words = append(t.words, string(r))
	}
	t.turned.Store(c.clock.Now().UnixNano())
	if !c.seen.CompareAndSwap(nil, t) {
		t = c.seen.Load()
	}
	return observe.Pages{
		Name: c.cfg.Name, Space: c.cfg.Space, Words: t.words, Reasons: t.reasons,
		Read:     func() (all, lately observe.PagesCounted) { return t.read(c.clock.Now()) },
		Failed:   func() *string { return t.failed.Load().lately(c.clock.Now()) },
		Faulty:   func() *string { return t.faulty.Load().lately(c.clock.Now()) },
		Unstored: func() *string { return t.unstored.Load().lately(c.clock.Now()) },
	}
}

// count counts how a request for the path was answered, if package admin looks.
func (c *Cache) count(res *Response, path string) {
	t := c.seen.Load()
	if t == nil {
		return
	}
	now, unstored := c.clock.Now(), res.Result == Passed && res.NotStored != ""
	t.turn(now)
	switch { // before it is counted: who sees a count wants a path
	case res.Result == Failed:
		t.failed.Store(&last{errs.Short(path), now})
	case res.Result == Faulty:
		t.faulty.Store(&last{errs.Short(path), now})
	case unstored:
		t.unstored.Store(&last{errs.Short(path), now})
	}
	t.results.Add(slices.Index(t.words, string(res.Result)))
	if unstored {
		i := slices.Index(t.reasons, res.NotStored)
		if i < 0 {
			i = len(t.reasons) - 1
		}
		t.passed.Add(i)
	}
}

// turn begins the last minutes anew, if it is time: nobody else does so, as there is no goroutine.
func (t *tally) turn(now time.Time) {
	turned := t.turned.Load()
	if now.UnixNano()-turned < int64(window) || !t.turned.CompareAndSwap(turned, now.UnixNano()) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.next = t.next, t.sum()
}

func (t *tally) sum() observe.PagesCounted {
	return observe.PagesCounted{Results: t.results.Sum(), Reasons: t.passed.Sum()}
}

// read is what was counted so far, and what of it in the last minutes.
func (t *tally) read(now time.Time) (all, lately observe.PagesCounted) {
	t.turn(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	all = t.sum()
	lately = all
	for i := range all.Results {
		lately.Results[i] -= t.since.Results[i]
		lately.Reasons[i] -= t.since.Reasons[i]
	}
	return all, lately
}
