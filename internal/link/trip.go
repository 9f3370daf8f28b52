package link

import "time"

const (
	// A parcel for each so much of a round trip may be in flight: about what a request costs the two processes.
	perCredit   = 50 * time.Microsecond
	mostCredits = 8
	// As long as nothing is known of the round trip.
	firstCredits = 4

	// near is a round trip so short that a change between goroutines would show.
	near = 300 * time.Microsecond

	tripWindow = time.Second
)

// trip estimates the round trip: the shortest of the last second or two, which neither a busy server nor a busy process
// makes longer for long.
type trip struct {
	current, before time.Duration // 0: none
	since           time.Time
}

func (t *trip) add(took time.Duration) {
	if now := time.Now(); now.Sub(t.since) > tripWindow {
		t.before, t.current, t.since = t.current, 0, now
	}
	if took = max(took, 1); t.current == 0 || took < t.current {
		t.current = took
	}
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

// isNear reports whether a caller may send a request itself.
func (t *trip) isNear() bool {
	s := t.shortest()
	return s > 0 && s < near
}
