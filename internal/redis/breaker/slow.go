package breaker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

const (
	// A median below that is never slow, and no request is late before earliestLate.
	leastSlow       = 20480 * time.Microsecond // the end of the bucket with 20 ms
	earliestLate    = 5 * time.Millisecond
	shortestTimeout = 20 * time.Millisecond

	// A median must have been too long for slowAfter, in fewestSlow replies together. What the first of them took is
	// part of that. Together with the turns in which that begins and ends it is less than a second.
	slowAfter  = 600 * time.Millisecond
	leastAfter = 2 * turn // all replies to a stop of Redis come in less
	fewestSlow = 8

	calmAfter   = 2 * time.Second
	longerCalm  = 8 * time.Second  // when it begins again: more would keep callers from a Redis that has long been quick
	forgetAfter = 10 * time.Minute // unless that is so long ago
	probeEvery  = 250 * time.Millisecond
	lateCosts   = 4 // turns: where only probes measure, one that is late is a turn's median
)

// mood says whether a part is slow. It begins and ends at different medians, and ends later if that repeats, so that a
// part at the edge does not change all the time. Guarded by latency.turning.
type mood struct {
	cost func() time.Duration // of the loads that Redis saves, 0 while nothing is known of it; nil: nobody asks

	slow   atomic.Bool
	began  time.Duration // since when the median is too long; 0: it is not
	seen   uint64        // replies since
	limit  time.Duration // what the median was longer than last, before it was slow
	calmed time.Duration // for how long it has been short again, less lateCosts times as long as it was not
	calm   time.Duration // how long it has to be
	judged time.Duration // when it was looked at last
	ended  time.Duration // when it was slow last; 0: never
}

// judge is called at the end of a turn, with its replies and their median. Enough is what that is too long beyond,
// before it has been for long enough to be slow: the first slow replies are the p99 of a part that has few, and would
// make those after them late later still.
func (m *mood) judge(now time.Duration, n uint64, median time.Duration) (changed bool, enough time.Duration) {
	switch {
	case m.cost == nil || n == 0:
		return false, 0
	case m.slow.Load():
		changed = m.mayEnd(now, median)
	default:
		changed = m.mayBegin(now, n, median)
	}
	if changed {
		m.slow.Store(!m.slow.Load())
	}
	if m.began > 0 && m.began < now && !m.slow.Load() { // not one turn alone
		enough = m.limit
	}
	return changed, enough
}

func (m *mood) mayBegin(now time.Duration, n uint64, median time.Duration) bool {
	cost := m.cost()
	limit := max(leastSlow, cost)
	if median <= limit || cost == 0 {
		m.began, m.seen = 0, 0
		return false
	}
	if m.limit = limit; m.began == 0 {
		m.began = max(now, 1)
	}
	if m.seen += n; m.seen < fewestSlow || now-m.began < max(slowAfter-median, leastAfter) {
		return false
	}
	if m.calm = longerCalm; m.ended == 0 || now-m.ended > forgetAfter {
		m.calm = calmAfter
	}
	m.calmed, m.judged = 0, now
	return true
}

func (m *mood) mayEnd(now, median time.Duration) bool {
	passed := min(now-m.judged, 2*probeEvery)
	m.judged = now
	if median > max(leastSlow, m.cost())*3/4 {
		m.calmed = max(0, m.calmed-lateCosts*passed)
		return false
	}
	if m.calmed += passed; m.calmed < m.calm {
		return false
	}
	m.ended, m.began, m.seen = now, 0, 0
	return true
}

// IsSlow reports whether the part answers more slowly than what it saves.
func (b *Breaker) IsSlow() bool { return b.mood.slow.Load() }

// LateAfter is how long a request is kept waiting before it is late, at most half of the time-out: four times the p99
// of the last minute, and as long as all but one in 200 took; and no longer than what makes a part slow, once that has
// begun.
func (b *Breaker) LateAfter(timeout time.Duration) time.Duration {
	f, late := b.figures.Load(), timeout/2
	if f.count >= leastCount {
		late = min(late, max(earliestLate, 4*f.p99, f.p995))
	}
	if f.enough > 0 {
		late = min(late, f.enough)
	}
	return late
}

// Expected is how long a request that is late will take, as far as is known.
func (b *Breaker) Expected(timeout time.Duration) time.Duration {
	if recent := b.figures.Load().recent; recent > leastSlow {
		return recent
	}
	return timeout / 2
}

// Timeout is how long to wait for a reply, at most the longest: four times the p99.9 of the last minute, and as long as
// all but one in 2,000 took.
func (b *Breaker) Timeout(longest time.Duration) time.Duration {
	f := b.figures.Load()
	if f.count < leastTail {
		return longest
	}
	return min(max(shortestTimeout, 4*f.p999, f.longest), longest)
}

// Recent is the median of the last replies; 0: nothing is known.
func (b *Breaker) Recent() time.Duration { return b.figures.Load().recent }

// Took notes how long a reply took, or that there was none for that long.
func (b *Breaker) Took(took time.Duration) {
	if b.countUntil.Load() != 0 && b.IsOpen() { // what does not answer is not slow
		b.wake()
		return
	}
	if !b.note(took) {
		return
	}
	if b.IsSlow() {
		b.wake()                     // those who wait for an answer before they load
		b.life.Try(b.probeWhileSlow) // stop: it is slow no more, or the Set closes; its probe has a time-out
	}
	b.tell()
}

// probeWhileSlow measures, because callers may not ask.
func (b *Breaker) probeWhileSlow() {
	for b.IsSlow() && b.life.Sleep(context.Background(), probeEvery) {
		if b.IsOpen() {
			continue // it is probed already
		}
		began := time.Now()
		err := b.probe()
		b.Record(err)
		if !script.Refused(err) && (!Unavailable(err) || errors.Is(err, context.DeadlineExceeded)) { // else it took that to be refused
			b.Took(time.Since(began))
		}
	}
}
