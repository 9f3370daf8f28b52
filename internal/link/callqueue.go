package link

import "slices"

// callQueue has the calls that wait, by rank.
type callQueue struct {
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
func (q *callQueue) full() bool  { return q.len() >= maxCalls }

// take fills a parcel in the order of the ranks. What is large or was refused in a pipeline goes alone.
func (q *callQueue) take(firstRankOnly bool) parcel {
	p := new(calls)
	for rank := range q.byRank {
		if firstRankOnly && Rank(rank) > EndsWork {
			break
		}
		for len(q.byRank[rank]) > 0 && len(p.all) < maxCalls {
			c := q.byRank[rank][0]
			single := c.alone || c.Size > maxCarried
			if c.waited && single && len(p.all) > 0 {
				return p
			}
			c.queued = false
			q.byRank[rank][0] = nil
			if q.byRank[rank] = q.byRank[rank][1:]; len(q.byRank[rank]) == 0 {
				q.byRank[rank] = nil
			}
			if !c.waited {
				q.gone--
				continue
			}
			c.sent = true
			p.all = append(p.all, c)
			if single {
				return p
			}
		}
	}
	if len(p.all) == 0 {
		return nil
	}
	return p
}

func (q *callQueue) drain(everything bool) []parcel {
	p := new(calls)
	for rank := range q.byRank {
		if !everything && Rank(rank) == EndsWork {
			continue
		}
		for _, c := range q.byRank[rank] {
			c.queued = false
			if c.waited {
				p.all = append(p.all, c)
			} else {
				q.gone--
			}
		}
		q.byRank[rank] = nil
	}
	if len(p.all) == 0 {
		return nil
	}
	return []parcel{p}
}
