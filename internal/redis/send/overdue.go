package send

import (
	"fmt"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/run/yield"
)

// slowShare of the time-out is what a parcel may take before the lane goes on without it.
const slowShare = 4

// overdue looks for parcels that take long. When the process is so busy that a reply may be there and nobody has had
// time to look, a parcel gets a little longer.
func (l *lane) overdue() {
	starved := yield.Starved()
	now := time.Now()
	lateAfter := l.lateAfter()
	l.mu.Lock()
	var lost []*flight
	for _, f := range l.flying {
		switch {
		case now.Before(f.slowAt):
			continue
		case now.Before(f.deadline):
		case starved && f.reprieves < yield.Reprieves:
			f.reprieves++
			f.deadline = now.Add(l.link.timeout / yield.Reprieves)
		default:
			f.givenUp, f.took = true, now.Sub(f.sent)
			l.trip.average(l.link.timeout)
			lost = append(lost, f)
		}
		l.returnCreditLocked(f)
	}
	l.flying = slices.DeleteFunc(l.flying, func(f *flight) bool { return f.givenUp })
	next := l.nextLocked()
	switch {
	case lateAfter == 0:
	case starved:
		next = earlier(next, now.Add(lateAfter)) // nobody is late yet
	default:
		next = earlier(next, l.tellLocked(now, lateAfter))
	}
	l.alarm.Rung()
	if !next.IsZero() {
		l.alarm.Set(next)
	}
	l.dispatchLocked()
	l.mu.Unlock()
	for _, f := range lost {
		f.worker.cancel()
		f.parcel.fail(noAnswer(f.deadline.Sub(f.sent)))
		l.report(f, outcome{err: ErrTimeout})
	}
}

// nextLocked is when to look again; zero: not before something is sent.
func (l *lane) nextLocked() (next time.Time) {
	for _, f := range l.flying {
		if f.slow {
			next = earlier(next, f.deadline)
		} else {
			next = earlier(next, f.slowAt)
		}
	}
	return next
}

// earlier is the earlier one of two times; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// lateAfter is how long a read is kept waiting before it is late; 0: none is ever, or the lane has none.
func (l *lane) lateAfter() time.Duration {
	if _, is := l.queue.(*readQueue); !is || l.link.LateAfter == nil {
		return 0
	}
	return l.link.LateAfter(l.breaker)
}

// asksLocked is the time, for a read that wants to know when its answer is late; zero: it will not be told.
func (l *lane) asksLocked() (now time.Time) {
	if lateAfter := l.lateAfter(); lateAfter > 0 {
		now = time.Now()
		l.alarm.Set(now.Add(lateAfter))
	}
	return now
}

// tellLocked tells those whose reads are late, in the queue and in flight, and returns when the next one is; zero:
// none.
func (l *lane) tellLocked(now time.Time, lateAfter time.Duration) time.Time {
	oldest := l.queue.(*readQueue).overdue(now.Add(-lateAfter))
	for _, f := range l.flying {
		oldest = earlier(oldest, f.parcel.(*reads).overdue(now.Add(-lateAfter)))
	}
	if oldest.IsZero() {
		return oldest
	}
	return oldest.Add(lateAfter)
}

func noAnswer(within time.Duration) error {
	return fmt.Errorf("no answer within %v: %w", within.Round(time.Millisecond), ErrTimeout)
}
