package link

import (
	"sync/atomic"
	"time"
)

const (
	ownEnough = 5 * time.Millisecond // a slower reply is the last for now that a caller waits for itself:

	// for this long, and twice as long for each slow one that follows. A busy machine makes one of many slow.
	slowFor, longestSlow = 6 * time.Millisecond, 192 * time.Millisecond

	// A reply that is given up costs its connection, and a Redis that pauses takes one from each caller of each instance, just when it
	// has the least time for new ones. So callers leave their requests to the lane for this long, and for twice as long if the next is
	// lost soon after that.
	lostFor, longestLost = time.Second, 16 * time.Second
)

// base makes monotonic time fit into an integer.
var base = time.Now()

// rest is when callers leave their requests to the lane, as Redis is not quick these days.
type rest struct {
	until     atomic.Int64 // in nanoseconds since base, as all times here
	slowInRow atomic.Int32 // replies

	lostUntil, lostPause atomic.Int64 // the last rest after a reply that was given up
}

func (r *rest) over(now time.Time) bool { return now.Sub(base) >= time.Duration(r.until.Load()) }

// after notes how long a request took that has ended now, and whether it was given up.
func (r *rest) after(now time.Time, took time.Duration, lost bool) {
	switch {
	case lost:
		r.lost(now.Sub(base))
	case took > ownEnough:
		r.begin(now.Sub(base) + min(slowFor<<min(r.slowInRow.Add(1)-1, 10), longestSlow))
	case r.slowInRow.Load() > 0:
		r.slowInRow.Store(0)
	}
}

// lost begins a longer rest. Of several that are lost at a time, one counts.
func (r *rest) lost(now time.Duration) {
	before, pause := time.Duration(r.lostUntil.Load()), lostFor
	switch since := now - before; {
	case since < 0:
		return
	case since < longestLost:
		pause = min(max(2*time.Duration(r.lostPause.Load()), lostFor), longestLost)
	}
	if r.lostUntil.CompareAndSwap(int64(before), int64(now+pause)) {
		r.lostPause.Store(int64(pause))
		r.begin(now + pause)
	}
}

// begin has callers rest until then, if not for longer already.
func (r *rest) begin(until time.Duration) {
	for {
		before := r.until.Load()
		if int64(until) <= before || r.until.CompareAndSwap(before, int64(until)) {
			return
		}
	}
}
