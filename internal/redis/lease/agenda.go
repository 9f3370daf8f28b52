package lease

import "time"

// agenda is a heap (package container/heap) of renewals, the one that is due first on top.
type agenda []*Renewal

// isDue reports whether the first one is due.
func (a agenda) isDue(now time.Time) bool { return len(a) > 0 && !a[0].due.After(now) }

// isSoon reports whether the first one is due, or will be within a tenth of its lease and has no attempt under way.
func (a agenda) isSoon(now time.Time) bool {
	return a.isDue(now) || len(a) > 0 && a[0].flying == 0 && a.isDue(now.Add(a[0].TTL/10))
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i+1, j+1
}

func (a *agenda) Push(r any) {
	*a = append(*a, r.(*Renewal)) //nolint:forcetypeassert // as heap.Push is called
	(*a)[len(*a)-1].place = len(*a)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	r := (*a)[last]
	(*a)[last], *a = nil, (*a)[:last]
	r.place = 0
	return r
}
