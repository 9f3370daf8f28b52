package memory

import "strconv"

// fields is HGETALL, of a key that may be of another kind: then it has none.
func (r *run) fields(key string) []pair {
	if it, _ := r.peek(key, hashes); it != nil {
		return it.hash.pairs
	}
	return nil
}

func (r *run) hget(key, field string) maybe {
	if it := r.at(key, hashes); it != nil {
		text, there := it.hash.get(field)
		return maybe{text, there}
	}
	return maybe{}
}

func (r *run) hmget(key string, fields ...string) []maybe {
	all := make([]maybe, len(fields))
	if it := r.at(key, hashes); it != nil {
		for i, field := range fields {
			all[i].text, all[i].there = it.hash.get(field)
		}
	}
	return all
}

// hset sets fields to the values behind them, and returns how many are new.
func (r *run) hset(key string, pairs ...string) (n int64) {
	if !r.grows() {
		return 0
	}
	it := r.make(key, hashes)
	if it == nil {
		return 0
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if it.hash.set(pairs[i], pairs[i+1]) {
			n++
		}
	}
	r.keys.weigh(it)
	return n
}

func (r *run) hdel(key string, fields ...string) (n int64) {
	if !r.writes() {
		return 0
	}
	it := r.at(key, hashes)
	if it == nil {
		return 0
	}
	for _, field := range fields {
		if it.hash.remove(field) {
			n++
		}
	}
	r.settle(it, len(it.hash.pairs))
	return n
}

// settle weighs an item that has lost parts, and removes it when it has none.
func (r *run) settle(it *item, parts int) {
	if r.keys.weigh(it); parts == 0 {
		r.keys.remove(it)
	}
}

func (r *run) hincrby(key, field string, by int64) int64 {
	if !r.fits() {
		return 0
	}
	value := r.hget(key, field)
	n, err := strconv.ParseInt(value.text, 10, 64)
	if value.there && err != nil && r.err == nil {
		r.err = refusal("ERR hash value is not an integer")
	}
	n += by
	r.hset(key, field, itoa(n))
	return n
}

// hexists reports whether a hash has a field.
func (r *run) hexists(key, field string) bool { return r.hget(key, field).there }

// zadd returns how many members are new: 1 or 0.
func (r *run) zadd(key string, score int64, member string) int64 {
	if !r.grows() {
		return 0
	}
	it := r.make(key, sorted)
	if it == nil {
		return 0
	}
	added := it.set.add(member, score)
	r.keys.weigh(it)
	if added {
		return 1
	}
	return 0
}

// zaddNew is ZADD NX.
func (r *run) zaddNew(key string, score int64, member string) int64 {
	if !r.fits() {
		return 0
	}
	if _, there := r.zscore(key, member); there {
		r.grows()
		return 0
	}
	return r.zadd(key, score, member)
}

// members returns what a sorted set has, by its scores.
func (r *run) members(key string) []scored {
	if it := r.at(key, sorted); it != nil {
		return it.set.all
	}
	return nil
}

func (r *run) zcard(key string) int64 { return int64(len(r.members(key))) }

// first is a sorted set's member with the lowest score; there is none of a key of another kind.
func (r *run) first(key string) (s scored, there bool) {
	if it, _ := r.peek(key, sorted); it != nil {
		return it.set.all[0], true
	}
	return s, false
}

// front is the name of the first; empty: the set is.
func (r *run) front(key string) string {
	if all := r.members(key); len(all) > 0 {
		return all[0].member
	}
	return ""
}

func (r *run) zscore(key, member string) (score int64, there bool) {
	if it := r.at(key, sorted); it != nil {
		score, there = it.set.scores[member]
	}
	return score, there
}

func (r *run) zrem(key string, members ...string) (n int64) {
	if !r.writes() {
		return 0
	}
	it := r.at(key, sorted)
	if it == nil {
		return 0
	}
	for _, member := range members {
		if it.set.remove(member) {
			n++
		}
	}
	r.settle(it, len(it.set.all))
	return n
}

// zremUpTo removes the members whose scores are at most that.
func (r *run) zremUpTo(key string, score int64) {
	r.zrem(key, r.namesUpTo(key, score)...)
}

// namesUpTo are the members whose scores are at most that.
func (r *run) namesUpTo(key string, score int64) (names []string) {
	if it := r.at(key, sorted); it != nil {
		for _, s := range it.set.upTo(score) {
			names = append(names, s.member)
		}
	}
	return names
}
