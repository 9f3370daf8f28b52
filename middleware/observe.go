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
	passed         observe.Counts         // of the results, by reason
	failed, faulty atomic.Pointer[string] // the paths of the last

	turned atomic.Int64 // when next was noted, in nanoseconds
	mu     sync.Mutex
	since  observe.PagesCounted // guarded by mu, as is next: what was counted when the last minutes began
	next   observe.PagesCounted // the same, of the next time
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
		Read:   func() (all, lately observe.PagesCounted) { return t.read(c.clock.Now()) },
		Failed: t.failed.Load, Faulty: t.faulty.Load,
	}
}

// count counts how a request for the path was answered, if package admin looks.
func (c *Cache) count(res *Response, path string) {
	t := c.seen.Load()
	if t == nil {
		return
	}
	t.turn(c.clock.Now())
	switch res.Result { // before it is counted: who sees a count wants a path
	case Failed:
		short := errs.Short(path)
		t.failed.Store(&short)
	case Faulty:
		short := errs.Short(path)
		t.faulty.Store(&short)
	}
	t.results.Add(slices.Index(t.words, string(res.Result)))
	if res.Result == Passed && res.NotStored != "" {
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
