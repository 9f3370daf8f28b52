package memory

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// What the locks of internal/lock/queue share: lua/prelude.lua, where the keys are described.

const (
	longestGrace = 3000
	remembered   = 600000 // ms: for so long the last fence and the gone are remembered
)

// queued is one run on such a lock.
type queued struct {
	*run
	keys              []string
	lock, alive, gone string
	fields            []maybe

	fence, longest, kept, grace int64

	waits bool // somebody does
	left  bool // somebody has left the queue in this run
	ttls  map[string]int64
}

func newQueued(r *run, keys []string, more ...string) queued {
	q := queued{run: r, keys: keys, lock: keys[0], alive: keys[len(keys)-2], gone: keys[len(keys)-1], ttls: make(map[string]int64)}
	q.fields = r.hmget(q.lock, append([]string{"fence", "longest", "gone", "ticket", "asked", "kept", "grace"}, more...)...)
	q.fence, q.longest, q.kept = q.fields[0].number(), q.fields[1].number(), q.fields[5].number()
	if q.grace = longestGrace; q.fields[6].there {
		q.grace = q.fields[6].number()
	}
	return q
}

// settled runs a script, and gives keys their TTLs, whether all went well or not.
func (q *queued) settled(do func() any) any {
	if q.err != nil {
		return q.err
	}
	reply := do()
	err := q.err
	q.err = nil
	for _, key := range slices.Sorted(maps.Keys(q.ttls)) {
		q.pexpire(key, q.ttls[key])
	}
	if err != nil {
		return err
	}
	return reply
}

func (q *queued) although() { q.hdel(q.lock, "") } // memory is full

// keep gives a key a TTL that ends no sooner than what it is about.
func (q *queued) keep(key string, fresh bool) {
	if q.err != nil {
		return
	}
	least := remembered + q.longest
	left, set := q.ttls[key]
	switch {
	case set:
	case fresh:
		left = -1
	default:
		left = q.pttl(key)
	}
	if left < least {
		left = 2 * least
		q.ttls[key] = left
	}
	if key == q.lock && q.kept < q.now+least {
		q.kept = q.now + left
		q.hset(q.lock, "kept", itoa(q.kept))
	}
}

func (q *queued) keepLock() {
	if q.kept < q.now+remembered+q.longest {
		q.keep(q.lock, false)
	}
}

// lease returns the deadline of one that begins now.
func (q *queued) lease(length int64) int64 {
	if length > q.longest {
		q.longest = length
		q.hset(q.lock, "longest", itoa(length))
		q.keep(q.lock, false)
	}
	return q.now + length
}

// most is the highest deadline that a lease may have.
func (q *queued) most() int64 {
	if q.longest > 0 {
		return q.now + q.longest
	}
	return math.MaxInt64
}

// highest returns the highest score of a set, at most the limit: those above it are lowered, which exist if the lock was deleted.
func (q *queued) highest(key string, limit int64) int64 {
	all := q.members(key)
	if len(all) == 0 {
		return 0
	}
	score := all[len(all)-1].score
	if score <= limit {
		return score
	}
	q.although()
	for _, s := range slices.Clone(all) {
		if s.score > limit {
			q.zadd(key, limit, s.member)
		}
	}
	return limit
}

// waiter is a field of the lock about one that waits.
type waiter struct {
	grace         int64
	ticket, inbox string
	leaves        int64
	known         bool
}

// waiterOf reads "GRACE:LEAVES:TICKET:INBOX".
func waiterOf(m maybe) (w waiter) {
	parts := strings.SplitN(m.text, ":", 4)
	if len(parts) < 4 || !digits(parts[0]) || !digits(parts[1]) || !digits(parts[2]) {
		return w
	}
	return waiter{grace: number(parts[0]), leaves: number(parts[1]), ticket: parts[2], inbox: parts[3], known: true}
}

func (q *queued) waiter(token string) waiter { return waiterOf(q.hget(q.lock, "waiter:"+token)) }

// leave removes a waiter from its queue, or, if none is given, from any.
func (q *queued) leave(token, queue string) waiter {
	w := q.waiter(token)
	q.hdel(q.lock, "waiter:"+token)
	q.zrem(q.alive, token)
	for _, key := range q.keys[2 : len(q.keys)-2] {
		if queue == "" || queue == key {
			q.zrem(key, token)
		}
	}
	q.left = true
	return w
}

func (q *queued) nextFence() string {
	q.fence = max(q.fence+1, q.micros)
	return itoa(q.fence)
}

func (q *queued) tell(inbox, key, body string) {
	q.publish(inbox, strconv.Itoa(len(key))+":"+key+body)
}

// bury removes the dead from the queue, and finds out whether anybody waits.
func (q *queued) bury() {
	if q.waits = q.highest(q.alive, q.now+q.grace) > 0; q.waits {
		for _, token := range q.namesUpTo(q.alive, q.now) {
			q.leave(token, "")
		}
	}
}

// stay notes until when a waiter lives without another heartbeat.
func (q *queued) stay(queue, token string, till int64, first bool) {
	q.zadd(q.alive, till, token)
	q.keepLock()
	q.keep(queue, first)
	q.keep(q.alive, first)
}

// enqueue gives a token a place in the queue, or finds the one that it has, and returns its ticket.
func (q *queued) enqueue(queue, token string, lives, patience, came int64, inbox string) string {
	last := q.fields[3].number() + max(q.micros-q.fields[4].number(), 1)
	place := last
	if came > 0 {
		place = last - max(q.micros-came, 0)
	}
	var known waiter
	if q.zaddNew(queue, place, token) == 0 {
		if known = q.waiter(token); !known.known {
			q.zadd(queue, place, token)
		}
	}
	if q.waits {
		q.grace = max(lives, q.grace)
	} else {
		q.grace = lives
	}
	ticket := known.ticket
	if !known.known {
		ticket = itoa(last)
	}
	since := itoa(lives) + ":" + itoa(q.now+patience) + ":" + ticket + ":" + inbox
	fields := []string{"waiter:" + token, since, "grace", itoa(q.grace)}
	if !known.known {
		fields = append(fields, "ticket", ticket, "asked", itoa(q.micros))
	}
	q.hset(q.lock, fields...)
	q.stay(queue, token, q.now+min(lives, patience), !q.waits)
	return ticket
}

// notHeld is -1 if the lock was revoked since the token got its fence, else 0.
func (q *queued) notHeld(since string) int64 {
	if q.hget(q.lock, "revoked").number() > number(since) {
		return -1
	}
	return 0
}

// late reports whether the token has given up, so that this request comes late.
func (q *queued) late(token string) bool {
	if q.now >= q.fields[2].number() {
		return false
	}
	_, gone := q.zscore(q.gone, token)
	return gone
}

// remember notes that the token has given up.
func (q *queued) remember(token string) {
	q.zremUpTo(q.gone, q.now)
	until := q.now + remembered
	if q.try(func() { q.zadd(q.gone, until, token) }) != nil {
		return
	}
	if q.try(func() { q.hset(q.lock, "gone", itoa(until)) }) == nil {
		q.keep(q.lock, false)
	}
	q.keep(q.gone, false)
}

// heartbeat is what both kinds do of it.
func (q *queued) heartbeat(queue string, args []string) bool {
	w := q.waiter(args[0])
	if !w.known || w.ticket != args[1] {
		return false
	}
	if _, waits := q.zscore(queue, args[0]); !waits {
		return false
	}
	q.although()
	q.stay(queue, args[0], min(q.now+number(args[2]), w.leaves), false)
	return true
}

func renewAlone(r *run, keys, args []string) any {
	key, token, writes := keys[0], args[0], args[2] == "1"
	var till int64
	var held bool
	if writes {
		writer := r.hmget(key, "writer", "deadline")
		till, held = writer[1].number(), writer[0].is(token) && writer[1].there
	} else {
		till, held = r.zscore(key, token)
	}
	if !held || till <= r.now {
		return int64(0)
	}
	till = max(till, r.now+number(args[1]))
	if writes {
		r.hdel(key, "")
		r.hset(key, "deadline", itoa(till))
	} else {
		r.zrem(key, "")
		r.zadd(key, till, token)
	}
	if least := remembered + number(args[1]); r.pttl(key) < least {
		r.pexpire(key, 2*least)
	}
	return int64(1)
}
