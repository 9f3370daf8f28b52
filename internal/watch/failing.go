package watch

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/logging"
	"github.com/cacheguard/go/internal/watch/observe"
)

const (
	failingSpan = 10 * time.Second
	someFailed  = 3           // so few failures are no trouble
	someMissed  = 4           // so few times at which messages may have been missed: a restart or a failover makes one or two
	failingFor  = time.Second // so long they must go on: one query may fail for many keys, or many callers, at once

	longestWhy = 512 // bytes of an error that are shown
)

// Failing says for how long many loads of a kind fail. It judges the loads of this span and of the one before, so of
// the last ten to twenty seconds: there is trouble when at least three and at least a quarter of them failed, for a
// second or more. It is over when at most a twentieth did, or none has failed for twenty seconds and no loader runs: it
// may hang. In between all stays as it is, so trouble does not come and go. Loads judge, and who looks; a timer only
// ends a trouble without either.
type Failing struct {
	episode
	Running atomic.Int64 // loaders

	of   []any  // the kind
	some uint64 // so many failures are trouble
	said func(failed, loads uint64) []any

	judging  sync.Mutex
	turned   time.Time // when this span began
	spans    [2]span
	first    time.Time   // when the first of these failed
	failedAt time.Time   // when a load failed last
	why      string      // what it said
	noneFail *time.Timer // owner: Failing; stop: a span without failures

	loads, failed atomic.Int64 // ever
}

type span struct{ loads, failed uint64 }

// Kind is what is known of a kind: how its loads fail.
type Kind struct {
	Failing

	unread logging.Throttle // what is logged
}

// Kind is what is known of a kind; empty: of keys without a Cache.
func (j *Journal) Kind(kind string) *Kind {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.kinds[kind]; known != nil {
		return known
	}
	f := new(Kind)
	f.some, f.said = someFailed, func(failed, loads uint64) []any { return []any{"failed", failed, "loads", loads} }
	j.openLocked(&f.episode, says{begun: "loads fail", over: "few loads fail, or none", costs: []cost{{name: "loads", count: f.loads.Load}, {name: "failed", count: f.failed.Load}}})
	if kind != "" {
		f.of = []any{slog.String("kind", kind)}
	}
	j.kinds[kind] = f
	return f
}

// Loaded notes how a load ended. The text is what may be known of its error outside of this process.
func (f *Failing) Loaded(err error, text string) { f.Heard(err, text, -1) }

// Heard notes that a load failed, somewhere: each instance may have few loads of a key for which all of them get the
// error. Redis remembers a failure for that long: one that failed here within that counts already.
func (f *Failing) Heard(err error, text string, remembered time.Duration) {
	f.judging.Lock()
	defer f.judging.Unlock()
	now := time.Now()
	if now.Sub(f.failedAt) <= remembered {
		return
	}
	loads, failed := f.countLocked(now)
	f.spans[0].loads++
	if err == nil {
		f.loads.Add(1)
		f.judgeLocked(loads+1, failed)
		return
	}
	if failed == 0 {
		f.first = now
	}
	f.spans[0].failed++
	f.failedAt, f.why = now, text[:min(len(text), longestWhy)]
	loads, failed = loads+1, failed+1
	if failed >= f.some && 4*failed >= loads && now.Sub(f.first) >= failingFor {
		f.begin(slices.Concat(f.of, f.said(failed, loads), []any{"error", err})...)
	}
	f.loads.Add(1)
	f.failed.Add(1)
	switch {
	case !f.on():
	case f.noneFail == nil:
		f.noneFail = time.AfterFunc(2*failingSpan, f.look)
	default:
		f.noneFail.Reset(2 * failingSpan)
	}
}

// countLocked counts the loads of the last two spans.
func (f *Failing) countLocked(now time.Time) (loads, failed uint64) {
	if passed := now.Sub(f.turned); passed >= failingSpan {
		f.spans, f.turned = [2]span{{}, f.spans[0]}, now
		if passed >= 2*failingSpan {
			f.spans[1] = span{}
		}
	}
	return f.spans[0].loads + f.spans[1].loads, f.spans[0].failed + f.spans[1].failed
}

func (f *Failing) judgeLocked(loads, failed uint64) {
	if 20*failed <= loads {
		f.end(f.of...)
	}
}

// Now is what is wrong with the loads, for package admin.
func (f *Failing) Now() observe.Failing {
	f.judging.Lock()
	defer f.judging.Unlock()
	loads, failed := f.nowLocked()
	return observe.Failing{For: f.lasting(), Loads: loads, Failed: failed, Last: f.why}
}

// nowLocked judges, unless what is known of a trouble is of loads that ended before those that run now.
func (f *Failing) nowLocked() (loads, failed uint64) {
	if f.Running.Load() > 0 && f.on() {
		return f.spans[0].loads + f.spans[1].loads, f.spans[0].failed + f.spans[1].failed
	}
	loads, failed = f.countLocked(time.Now())
	f.judgeLocked(loads, failed)
	return loads, failed
}

// look ends a trouble at which nobody looks, or looks again.
func (f *Failing) look() {
	f.judging.Lock()
	defer f.judging.Unlock()
	if f.nowLocked(); f.on() && f.Running.Load() > 0 {
		f.noneFail.Reset(2 * failingSpan)
	}
}
