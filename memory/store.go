package memory

import "container/heap"

// kind is what a key holds.
type kind byte

const (
	str kind = iota
	hashes
	sorted
	listed
)

// item is what is at a key.
type item struct {
	key  string
	kind kind

	text string
	hash hash
	set  zset
	list []string // newest last

	ends  int64 // when it expires, in ms; 0: never
	place int   // among those that expire
	size  int64 // what it counts for

	gives        bool // way to others: it is a cached value
	newer, older *item
}

// overhead is about what a key takes beside its own bytes and those of what it holds, and perField what a part of that takes.
const (
	overhead = 240
	perField = 64
)

// store is the keys.
type store struct {
	items map[string]*item
	due   due
	used  int64
	max   int64

	newest, oldest *item // of those that give way, by their last use
}

// put adds an item, which is not there.
func (s *store) put(it *item) {
	s.items[it.key] = it
	s.weigh(it)
	if it.gives {
		s.toFront(it)
	}
}

// remove removes it.
func (s *store) remove(it *item) {
	delete(s.items, it.key)
	s.used -= it.size
	s.setEnd(it, 0)
	s.unlink(it)
}

// weigh counts what an item takes, after it has changed.
func (s *store) weigh(it *item) {
	size := overhead + 2*int64(len(it.key)) + int64(len(it.text)) + it.hash.bytes + it.set.bytes
	if it.kind == listed {
		for _, v := range it.list {
			size += perField + int64(len(v))
		}
	}
	s.used += size - it.size
	it.size = size
}

// setEnd has an item expire then, or, if that is 0, never.
func (s *store) setEnd(it *item, at int64) {
	was := it.ends
	it.ends = at
	switch {
	case was == 0 && at != 0:
		heap.Push(&s.due, it)
	case was != 0 && at == 0:
		heap.Remove(&s.due, it.place)
	case at != was:
		heap.Fix(&s.due, it.place)
	}
}

// expire removes what has expired.
func (s *store) expire(now int64) {
	for len(s.due) > 0 && s.due[0].ends <= now {
		s.remove(s.due[0])
	}
}

// makeRoom has values give way until there is room for that many bytes, and reports whether there is. What it keeps stays.
func (s *store) makeRoom(bytes int64, keep *item) bool {
	if bytes > s.max {
		return false // not even alone
	}
	for s.used+bytes > s.max {
		last := s.oldest
		if last != nil && last == keep {
			last = last.newer
		}
		if last == nil {
			return false
		}
		s.remove(last)
	}
	return true
}

// touch notes that a value was used.
func (s *store) touch(it *item) {
	if it.gives && s.newest != it {
		s.unlink(it)
		s.toFront(it)
	}
}

func (s *store) toFront(it *item) {
	if it.older = s.newest; it.older != nil {
		it.older.newer = it
	} else {
		s.oldest = it
	}
	s.newest = it
}

func (s *store) unlink(it *item) {
	if !it.gives {
		return
	}
	if it.newer != nil {
		it.newer.older = it.older
	} else if s.newest == it {
		s.newest = it.older
	}
	if it.older != nil {
		it.older.newer = it.newer
	} else if s.oldest == it {
		s.oldest = it.newer
	}
	it.newer, it.older = nil, nil
}

// due is a heap of those that expire.
type due []*item

func (d due) Len() int           { return len(d) }
func (d due) Less(i, j int) bool { return d[i].ends < d[j].ends }
func (d due) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push is for heap.
func (d *due) Push(x any) {
	it := x.(*item)
	it.place = len(*d)
	*d = append(*d, it)
}

// Pop is for heap.
func (d *due) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return it
}
