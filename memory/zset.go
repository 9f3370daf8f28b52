package memory

import (
	"cmp"
	"slices"
)

// scored is a member of a sorted set. All scores of the library are whole numbers.
type scored struct {
	member string
	score  int64
}

// zset is members by their scores, and those with the same by their names.
type zset struct {
	all    []scored
	scores map[string]int64
	bytes  int64
}

func compare(a, b scored) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// add returns whether the member is new.
func (z *zset) add(member string, score int64) bool {
	was, there := z.scores[member]
	if there && was == score {
		return false
	}
	if there {
		z.cut(scored{member, was})
	} else {
		z.bytes += 2*perField + int64(len(member))
	}
	if z.scores == nil {
		z.scores = make(map[string]int64)
	}
	z.scores[member] = score
	i, _ := slices.BinarySearchFunc(z.all, scored{member, score}, compare)
	z.all = slices.Insert(z.all, i, scored{member, score})
	return !there
}

func (z *zset) cut(s scored) {
	if i, there := slices.BinarySearchFunc(z.all, s, compare); there {
		z.all = slices.Delete(z.all, i, i+1)
	}
}

// remove reports whether the member was there.
func (z *zset) remove(member string) bool {
	score, there := z.scores[member]
	if there {
		z.cut(scored{member, score})
		delete(z.scores, member)
		z.bytes -= 2*perField + int64(len(member))
	}
	return there
}

// upTo are the members whose scores are at most that.
func (z *zset) upTo(score int64) []scored {
	i, _ := slices.BinarySearchFunc(z.all, score, func(s scored, score int64) int {
		if s.score <= score {
			return -1
		}
		return 1
	})
	return z.all[:i]
}
