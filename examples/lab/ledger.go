package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// ledger has the figures: calls, queries, and what each expiry cost.
type ledger struct {
	mu       sync.Mutex
	payer    mode  // of what begins now; empty: it is not an expiry alone
	number   int64 // of the newest call
	calls    map[*call]bool
	ended    []ending    // within the last second, the oldest first
	queries  []time.Time // that began within the last second, the oldest first
	running  int         // queries, queued ones included
	peak     int         // the most at once, since pays
	failed   int64
	outdated int64 // answers older than a write that had returned before the call began
	written  int64 // the newest version whose write has returned
	episode  *episode
	costs    map[mode]episode // of the last expiry
	journal  []line
	lines    int64 // how many there have been
}

// call is a caller's question that has no answer yet.
type call struct {
	number, written int64
	began           time.Time
	by              *instance
}

type ending struct {
	at      time.Time
	took    time.Duration
	hit     bool
	version int64
}

// line is something that happened.
type line struct {
	Number int64  `json:"number"`
	Time   int64  `json:"time"` // milliseconds since 1970
	Text   string `json:"text"`
}

// episode is what one expiry leads to: it begins with the first query, and ends when none runs and all who called before the
// last one ended have their answer.
type episode struct {
	Queries int     `json:"queries"`
	Slowest float64 `json:"slowest"` // milliseconds
	last    int64   // the newest call when the last query ended
	payer   mode
}

func newLedger() *ledger { return &ledger{calls: make(map[*call]bool), costs: make(map[mode]episode)} }

func (l *ledger) begin(by *instance) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	c := &call{number: l.number, written: l.written, began: time.Now(), by: by}
	l.calls[c] = true
	return c
}

// end notes an answer or a failure, or that the call was given up, when the answer has no outcome.
func (l *ledger) end(c *call, a answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c)
	took := time.Since(c.began)
	switch {
	case err != nil:
		l.failed++
	case a.how != "":
		c.by.answers[a.how]++
		hit := a.how == cacheguard.Hit || a.how == cacheguard.Local || a.how == cacheguard.Stale
		l.ended = append(l.ended, ending{time.Now(), took, hit, a.product.Version})
		if a.product.Version < c.written {
			l.outdated++
		}
	}
	if l.episode != nil {
		l.episode.Slowest = max(l.episode.Slowest, millis(took))
		if a.how == cacheguard.Bypassed { // Redis was not there, or is not asked yet
			l.episode.payer = ""
		}
	}
	l.settle()
}

func (l *ledger) queryBegan(by *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.episode == nil {
		l.episode = &episode{payer: l.payer}
	}
	l.running++
	by.loading++
	l.queries = append(l.queries, time.Now())
	l.episode.Queries++
	l.peak = max(l.peak, l.running)
}

func (l *ledger) queryEnded(by *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	by.loading--
	l.episode.last = l.number
	l.settle()
}

// settle ends the episode when it is over.
func (l *ledger) settle() {
	if l.episode == nil || l.running > 0 {
		return
	}
	for c := range l.calls {
		if c.number <= l.episode.last {
			return
		}
	}
	e := *l.episode
	l.episode = nil
	if e.payer != "" {
		l.costs[e.payer] = e
		l.add(fmt.Sprintf("One expiry, %s: queries %d, the slowest caller waited %.0f ms.", names[e.payer], e.Queries, e.Slowest))
	}
}

// pays says who pays for the expiries that begin from now on, if anybody. A rebuild under way is more than an expiry.
func (l *ledger) pays(m mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.payer, l.peak = m, l.running
	if l.episode != nil {
		l.episode.payer = ""
	}
}

func (l *ledger) wrote(version int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = max(l.written, version)
}

func (l *ledger) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(text)
}

func (l *ledger) add(text string) {
	const kept = 50
	l.lines++
	l.journal = append(l.journal, line{l.lines, time.Now().UnixMilli(), text})
	l.journal = slices.Delete(l.journal, 0, max(0, len(l.journal)-kept))
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
