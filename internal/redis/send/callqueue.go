package send

import (
	"context"
	"slices"
	"time"
)

// callQueue has the calls that wait, by rank.
type callQueue struct {
	most   int // in one parcel
	byRank [ranks][]*queuedCall
	gone   int // those whose callers have walked away
}

func (q *callQueue) add(c *queuedCall) {
	if total := q.len(); q.gone > 64 && q.gone > total/2 {
		q.sweep()
	}
	c.queued = true
	q.byRank[c.Rank] = append(q.byRank[c.Rank], c)
}

// sweep forgets what nobody waits for.
func (q *callQueue) sweep() {
	for rank := range q.byRank {
		q.byRank[rank] = slices.DeleteFunc(q.byRank[rank], func(c *queuedCall) bool { return !c.waited })
	}
	q.gone = 0
}

func (q *callQueue) len() (n int) {
	for rank := range q.byRank {
		n += len(q.byRank[rank])
	}
	return n
}

func (q *callQueue) empty() bool { return q.len() == 0 }
func (q *callQueue) full() bool  { return q.len() >= q.most }

// take fills a parcel in the order of the ranks. Calls that are large or were refused in a pipeline go alone. Calls
// whose callers will have left before an answer comes stay, unless nothing else is under way: an answer shows how long
// one takes.
func (q *callQueue) take(urgentOnly bool, trip time.Duration, idle bool) parcel {
	p, then := newCalls(), time.Now().Add(trip)
	for rank := range q.byRank {
		if urgentOnly && Rank(rank) > Renews {
			break
		}
		waiting := q.byRank[rank]
		kept, i, full := waiting[:0], 0, false
		for ; i < len(waiting) && len(p.all) < q.most && !full; i++ {
			c := waiting[i]
			switch single := c.alone || c.Size > maxCarried || len(c.with) > 0; {
			case c.waited && single && len(p.all) > 0:
				kept, full = append(kept, c), true
			case c.waited && !c.leaves.IsZero() && c.leaves.Before(then):
				kept = append(kept, c)
			default:
				q.send(p, c)
				full = single && len(p.all) > 0
			}
		}
		q.keep(rank, kept, i)
		if full {
			return p
		}
	}
	for rank := ranks - 1; idle && len(p.all) == 0 && !urgentOnly && rank >= 0; rank-- {
		for n := len(q.byRank[rank]); n > 0 && len(p.all) == 0; n-- {
			last := q.byRank[rank][n-1]
			q.keep(int(rank), q.byRank[rank][:n-1], n)
			q.send(p, last)
		}
	}
	if len(p.all) == 0 {
		return nil
	}
	return p
}

// keep leaves in a rank's queue what was kept of its first n, and the rest.
func (q *callQueue) keep(rank int, kept []*queuedCall, n int) {
	all := q.byRank[rank]
	switch {
	case len(kept) == 0 && n == len(all) && cap(all) <= maxCalls:
		clear(all)
		q.byRank[rank] = all[:0]
	case len(kept) == 0 && n == len(all):
		q.byRank[rank] = nil
	case len(kept) == 0:
		clear(all[:n])
		q.byRank[rank] = all[n:]
	default:
		rest := append(kept, all[n:]...)
		clear(all[len(rest):])
		q.byRank[rank] = rest
	}
}

// send takes a call out of the queue, into the parcel if it is still to be sent, and the calls that come with it.
func (q *callQueue) send(p *calls, c *queuedCall) {
	c.queued = false
	if !c.waited {
		q.gone--
	}
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
	case !c.waited:
	case !c.Trail.begin():
		c.answerLocked(nil, context.Canceled)
	default:
		c.sent, c.began = true, time.Now()
		p.all = append(p.all, c)
	}
}

func (q *callQueue) overdue(before time.Time) (oldest time.Time) {
	for _, waiting := range q.byRank {
		if asked := overdue(waiting, before); !asked.IsZero() && (oldest.IsZero() || asked.Before(oldest)) {
			oldest = asked
		}
	}
	return oldest
}

func (q *callQueue) drain(everything bool) []parcel {
	p := newCalls()
	for rank := range q.byRank {
		if !everything && Rank(rank) <= Renews {
			continue
		}
		for _, c := range q.byRank[rank] {
			c.queued = false
			if c.waited {
				p.all = append(p.all, c)
			} else {
				q.gone--
			}
			for _, other := range c.with {
				if other.waited {
					p.all = append(p.all, other)
				}
			}
		}
		q.byRank[rank] = nil
	}
	if len(p.all) == 0 {
		return nil
	}
	return []parcel{p}
}
