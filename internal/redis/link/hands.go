package link

import "slices"

const (
	// mostHands is up to how many callers of different keys are better off with a connection each than with a parcel to share: each
	// has its answer as soon as Redis has sent it. More would cost Redis a request each.
	mostHands = 8

	// So many parcels in a row must have been for so few callers before these send for themselves again.
	quietAfter = 16
)

// hands are the callers of a lane that send their requests themselves.
type hands struct {
	most    int          // at once; 0: one, and only while nothing else is in flight
	busy    []*ownFlight // theirs
	idle    []*ownFlight // room for the next
	crowded bool         // there are more callers, or several for one key: they share parcels
	quiet   int          // parcels in a row that most hands could have done without
}

// freeLocked reports whether a caller may send a request for the key itself, beside what is in flight.
func (h *hands) freeLocked(key string, flying int) bool {
	switch {
	case h.most == 0:
		return flying == 0
	case h.crowded:
		return false
	case len(h.busy) >= h.most || slices.ContainsFunc(h.busy, func(f *ownFlight) bool { return f.key == key }):
		h.crowded, h.quiet = true, 0
		return false
	}
	return true
}

// preferredLocked reports whether callers are better off without parcels.
func (h *hands) preferredLocked() bool { return h.most > 0 && !h.crowded }

func (h *hands) takeLocked() (f *ownFlight) {
	if n := len(h.idle); n > 0 {
		f = h.idle[n-1]
		h.idle = h.idle[:n-1]
	} else {
		f = &ownFlight{end: make(chan struct{})}
	}
	h.busy = append(h.busy, f)
	return f
}

// returnLocked takes back one whose request has ended. One that has expired is of no more use.
func (h *hands) returnLocked(f *ownFlight) {
	i := slices.Index(h.busy, f)
	h.busy = slices.Delete(h.busy, i, i+1)
	if f.Err() == nil {
		h.idle = append(h.idle, f)
	}
}

// sendLocked looks at a parcel that is sent beside what is in flight: it may be one of those after which a crowd is none any more.
func (h *hands) sendLocked(p parcel, flying []*flight) {
	g, isRead := p.(*reads)
	if !isRead || !h.crowded {
		return
	}
	all := g.callers
	for _, f := range flying {
		if other, isRead := f.parcel.(*reads); isRead {
			all += other.callers
		} else {
			all++
		}
	}
	if shared := g.callers - len(g.all); all > h.most || 2*shared >= g.callers && shared > 0 {
		h.quiet = 0
	} else if h.quiet++; h.quiet >= quietAfter {
		h.crowded = false
	}
}
