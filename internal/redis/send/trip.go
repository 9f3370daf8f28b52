package send

import "time"

const (
	// A parcel for each so much of a round trip may be in flight: about what a request costs the two processes.
	perCredit   = 50 * time.Microsecond
	mostCredits = 8
	// And of reads one more, so that Redis has one to answer while the callers of another are woken.
	spareReads = 1
	// As long as nothing is known of the round trip.
	firstCredits = 4

	tripWindow = time.Second

	// The longest that is taken into the average, or a Redis that did not answer would look far away for long.
	longestTrip = 100 * time.Millisecond
)

// trip estimates the round trip: the shortest of the last second or two, which neither a busy server nor a busy process
// makes longer for long.
type trip struct {
	current, before time.Duration // 0: none
	since           time.Time
	smooth          time.Duration // the average, where new ones weigh more
}

func (t *trip) add(now time.Time, took time.Duration) {
	if now.Sub(t.since) > tripWindow {
		t.before, t.current, t.since = t.current, 0, now
	}
	took = max(took, 1)
	t.average(took)
	if t.current == 0 || took < t.current {
		t.current = took
	}
}

func (t *trip) average(took time.Duration) {
	took = min(took, longestTrip)
	if t.smooth == 0 {
		t.smooth = took
	}
	t.smooth += (took - t.smooth) / 8
}

// shortest is 0 while nothing is known.
func (t *trip) shortest() time.Duration {
	if t.before > 0 && (t.current == 0 || t.before < t.current) {
		return t.before
	}
	return t.current
}

// credits is how many parcels may be in flight.
func (t *trip) credits() int {
	s := t.shortest()
	if s == 0 {
		return firstCredits
	}
	return min(mostCredits, 1+int(s/perCredit))
}
