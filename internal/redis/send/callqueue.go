package send

import (
	"context"
	"time"
)

// callQueue has the calls that wait, by rank. A call whose caller walks away leaves it, unless others go in its
// request.
type callQueue struct {
	most   int // in one parcel
	n      int // calls
	byRank [ranks]struct{ first, last *queuedCall }
}

func (q *callQueue) add(c *queuedCall) {
	of := &q.byRank[c.Rank]
	c.queued, c.before = true, of.last
	if of.last == nil {
		of.first = c
	} else {
		of.last.after = c
	}
	of.last = c
	q.n++
}

func (q *callQueue) remove(c *queuedCall) {
	of := &q.byRank[c.Rank]
	if c.before == nil {
		of.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		of.last = c.before
	} else {
		c.after.before = c.before
	}
	c.queued, c.before, c.after = false, nil, nil
	q.n--
}

func (q *callQueue) empty() bool { return q.n == 0 }
func (q *callQueue) full() bool  { return q.n >= q.most }

// take fills a parcel in the order of the ranks. Calls that are large or were refused in a pipeline go alone. Calls
// whose callers will have left before an answer comes stay, unless nothing else is under way: an answer shows how long
// one takes.
func (q *callQueue) take(urgentOnly bool, trip time.Duration, idle bool) parcel {
	p, last := newCalls(), Ordinary
	if urgentOnly {
		last = Renews
	}
	q.fill(p, last, time.Now().Add(trip))
	for rank := last; idle && !urgentOnly && rank >= 0; rank-- {
		for c := q.byRank[rank].last; c != nil && len(p.all) == 0; c = q.byRank[rank].last {
			q.send(p, c)
		}
	}
	if len(p.all) == 0 {
		return nil
	}
	return p
}

// fill takes calls up to the last rank, but not those whose callers will have left by then.
func (q *callQueue) fill(p *calls, last Rank, then time.Time) {
	var next *queuedCall
	for rank := range last + 1 {
		for c := q.byRank[rank].first; c != nil && len(p.all) < q.most; c = next {
			next = c.after
			single := c.alone || c.Size > maxCarried || len(c.with) > 0
			switch {
			case single && len(p.all) > 0:
				return
			case c.leaves.IsZero() || !c.leaves.Before(then):
				q.send(p, c)
			}
			if single && len(p.all) > 0 {
				return
			}
		}
	}
}

// send takes a call out of the queue, into the parcel if it is still to be sent, and the calls that come with it.
func (q *callQueue) send(p *calls, c *queuedCall) {
	q.remove(c)
	with := c.with
	c.with = nil // if it is sent again, it goes without them
	p.begin(c)
	for _, other := range with {
		p.begin(other)
	}
}

// begin adds a call that somebody waits for.
func (p *calls) begin(c *queuedCall) {
	switch {
	case !c.waited || c.answered:
	case !c.Trail.begin():
		c.answerLocked(nil, context.Canceled)
	default:
		c.sent, c.began = true, time.Now()
		p.all = append(p.all, c)
	}
}

func (q *callQueue) drain(everything bool) []parcel {
	p, first := newCalls(), HoldsSlot
	if everything {
		first = EndsWork
	}
	for rank := first; rank < ranks; rank++ {
		for c := q.byRank[rank].first; c != nil; c = q.byRank[rank].first {
			q.remove(c)
			for _, some := range append([]*queuedCall{c}, c.with...) {
				if some.waited {
					p.all = append(p.all, some)
				}
			}
		}
	}
	if len(p.all) == 0 {
		return nil
	}
	return []parcel{p}
}
