package memory

import "slices"

// The scripts of internal/lock/rw, and lua/prelude.lua there, where the keys are described.

// rwlock is one run on such a lock.
type rwlock struct {
	queued
	readers, writers, waiting string

	writerField maybe // as it was
	writer      string
	writes      bool // there is a writer
	deadline    int64
	readUntil   int64 // 0: nobody reads
	ended       bool  // a writer's turn has ended in this run
	stands      bool  // and the lock still names that writer
	second      maybe // in the queue after the writer who was granted the lock
	secondKnown bool
	known       int64 // until when somebody held, as far as the waiters could know before this run
}

func readRW(r *run, keys []string) *rwlock {
	l := &rwlock{queued: newQueued(r, keys, "writer", "deadline", "solo"), readers: keys[1], writers: keys[2], waiting: keys[3]}
	l.writerField = l.fields[7]
	l.writer, l.writes, l.deadline = l.writerField.text, l.writerField.there, l.fields[8].number()
	return l
}

// settledRW is a script behind its fields.
func settledRW(r *run, keys []string, do func(l *rwlock) any) any {
	l := readRW(r, keys)
	return l.settled(func() any { return do(l) })
}

func (l *rwlock) endTurn() { l.writer, l.writes, l.ended, l.stands = "", false, true, true }

func (l *rwlock) clear() {
	if l.stands {
		l.hdel(l.lock, "writer", "deadline")
		l.stands = false
	}
}

func (l *rwlock) endWriter() {
	l.endTurn()
	l.clear()
}

func (l *rwlock) holdWrite(token string, till int64) {
	l.writer, l.writes, l.deadline, l.stands = token, true, till, false
	l.hset(l.lock, "writer", token, "deadline", itoa(till), "fence", l.nextFence())
	l.keepLock()
}

func (l *rwlock) holdRead(token string, till int64) {
	l.zadd(l.readers, till, token)
	l.keep(l.readers, l.readUntil == 0)
	l.readUntil = max(l.readUntil, till)
}

// held is until when somebody holds.
func (l *rwlock) held() int64 {
	if l.writes {
		return l.deadline
	}
	return l.readUntil
}

// admit grants the lock to all that wait to read.
func (l *rwlock) admit() {
	all := l.members(l.waiting)
	if len(all) == 0 {
		return
	}
	l.clear()
	told := make(map[string]bool)
	fields := make([]string, len(all))
	tills := make([]int64, len(all))
	for i, s := range all {
		fields[i] = "waiter:" + s.member
		w := l.waiter(s.member)
		tills[i] = l.lease(w.grace)
		l.readUntil = max(l.readUntil, tills[i])
		if w.inbox != "" {
			told[w.inbox] = true
		}
	}
	for i, s := range all {
		l.zadd(l.readers, tills[i], s.member)
		l.zrem(l.alive, s.member)
	}
	l.hdel(l.lock, fields...)
	l.del(l.waiting)
	l.keep(l.readers, false)
	ticket := l.hget(l.lock, "ticket")
	if !ticket.there {
		ticket.text = "0"
	}
	for inbox := range told {
		l.tell(inbox, l.lock, ticket.text+":"+itoa(l.fence))
	}
}

// hasten makes the first writer ask, if the remaining leases end sooner than it knows, and before its next heartbeat.
func (l *rwlock) hasten() {
	till := l.held()
	if !l.left && till >= l.known {
		return
	}
	l.known, l.left = till, false
	first := l.second
	if !l.secondKnown {
		first.text = l.front(l.writers)
		first.there = first.text != ""
	}
	if !first.there {
		return
	}
	if w := l.waiter(first.text); w.known && w.inbox != "" && 3*(till-l.now) < w.grace {
		l.tell(w.inbox, l.lock+":"+first.text, "")
	}
}

// handOn hands the lock on, if somebody may have it now.
func (l *rwlock) handOn() {
	if l.writes {
		return
	}
	if l.ended || l.zcard(l.writers) == 0 {
		l.admit()
	}
	if l.readUntil != 0 {
		return
	}
	all := l.members(l.writers)
	if len(all) == 0 {
		return
	}
	first := all[0].member
	l.second, l.secondKnown = maybe{}, true
	if len(all) > 1 {
		l.second = maybe{all[1].member, true}
	}
	w := l.leave(first, l.writers)
	l.holdWrite(first, l.lease(w.grace))
	if w.inbox != "" {
		l.tell(w.inbox, l.lock+":"+first, w.ticket+":"+itoa(l.fence))
	}
}

func (l *rwlock) promote() {
	l.secondKnown = false
	if l.waits {
		l.handOn()
		l.hasten()
	}
	l.clear()
}

func (l *rwlock) readReaders() { l.readUntil = l.highest(l.readers, l.most()) }

// expire ends the leases that have expired, and removes the dead from the queue.
func (l *rwlock) expire() {
	if l.writes && l.deadline > l.now+l.longest { // the lock has lost its longest
		l.deadline = l.now + l.longest
		l.although()
		l.hset(l.lock, "deadline", itoa(l.deadline))
	}
	l.readReaders()
	l.known = l.held()
	if l.writes && l.deadline <= l.now {
		l.endTurn()
	}
	if l.readUntil > 0 {
		l.zremUpTo(l.readers, l.now)
		if l.readUntil <= l.now {
			l.readUntil = 0
		}
	}
	l.bury()
}

func (l *rwlock) advance() {
	l.expire()
	l.promote()
}

// renew renews the token's lease, and returns how it holds: 'w', 'r' or 0.
func (l *rwlock) renew(token string, length int64) (mode byte, till int64) {
	if l.writes && l.writer == token {
		l.although()
		l.deadline = max(l.deadline, l.lease(length))
		l.hset(l.lock, "deadline", itoa(l.deadline))
		l.keep(l.lock, false)
		return 'w', l.deadline
	}
	if l.readUntil > 0 {
		if score, reads := l.zscore(l.readers, token); reads {
			l.although()
			till = max(score, l.lease(length))
			l.holdRead(token, till)
			return 'r', till
		}
	}
	return 0, 0
}

// soonest is in how many ms asking again may change something for a waiter.
func (l *rwlock) soonest(reads bool) int64 {
	till := l.held()
	if reads && !l.writes {
		if all := l.members(l.writers); len(all) > 0 {
			if alive, there := l.zscore(l.alive, all[len(all)-1].member); there {
				till = min(till, alive)
			}
		}
	}
	return max(till-l.now, 1)
}

// acquireFree is the common case of acquire: a writer asks, and nobody holds or waits. It returns the fence; 0: it is not that case.
func (l *rwlock) acquireFree(args []string, absent ...string) int64 {
	f, length := l.fields, number(args[2])
	if l.err != nil || args[1] != "w" || l.writerField.there || !f[0].there || !f[1].there || !f[5].there ||
		l.exists(slices.Concat(absent, l.keys[1:5])...) != 0 {
		return 0
	}
	if l.fence >= l.micros || length > l.longest || l.kept-l.longest-remembered < l.now || l.late(args[0]) {
		return 0
	}
	l.hset(l.lock, "writer", args[0], "deadline", itoa(l.now+length), "fence", itoa(l.micros), "solo", f[3].text)
	return l.micros
}

// isLone tells whether a release is the common case: none of the writer's requests may come late, and nobody has queued.
func (l *rwlock) isLone(args []string) bool {
	ticket, solo := l.fields[3], l.fields[9]
	return l.err == nil && l.writerField.is(args[0]) && args[2] != "1" &&
		(ticket.there && solo.is(ticket.text) || !ticket.there && !l.fields[4].there && solo.is(""))
}

func (l *rwlock) releaseLone() { l.hdel(l.lock, "writer", "deadline") }

// acquire is acquire.lua behind its common case.
func (l *rwlock) acquire(args []string) any {
	token, mode, length := args[0], args[1], number(args[2])
	l.advance()
	if l.late(token) {
		return []any{"busy", int64(0)}
	}
	how, _ := l.renew(token, length)
	held := how != 0
	switch {
	case held || l.writes:
	case mode == "r" && (!l.waits || l.zcard(l.writers) == 0):
		l.holdRead(token, l.lease(length))
		held = true
	case mode == "w" && l.readUntil == 0:
		l.holdWrite(token, l.lease(length))
		held = true
	}
	if held {
		return l.fence
	}
	patience := number(args[4])
	if args[3] == "0" || patience <= 0 {
		return []any{"busy", l.held() - l.now}
	}
	l.lease(length)
	queue := l.waiting
	if mode == "w" {
		queue = l.writers
	}
	ticket := l.enqueue(queue, token, number(args[3]), patience, number(args[6]), args[5])
	return []any{"queued", l.soonest(mode != "w"), number(ticket), l.micros}
}

func acquireRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		if fence := l.acquireFree(args); fence != 0 {
			return fence
		}
		return l.acquire(args)
	})
}

// release is release.lua behind its common case.
func (l *rwlock) release(args []string) any {
	token, had, wrote := args[0], int64(1), l.writes && l.writer == args[0]
	l.expire()
	if args[2] == "1" {
		l.remember(token)
	}
	switch {
	case l.writes && l.writer == token:
		l.endTurn()
	case wrote:
	case l.readUntil > 0 && l.zrem(l.readers, token) == 1:
		l.readReaders()
	case l.waits && l.isAlive(token):
		l.leave(token, "")
	default:
		had = l.notHeld(args[1])
	}
	l.promote()
	return had
}

func (q *queued) isAlive(token string) bool {
	_, alive := q.zscore(q.alive, token)
	return alive
}

func releaseRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		if l.isLone(args) {
			l.releaseLone()
			return int64(1)
		}
		return l.release(args)
	})
}

func heartbeatRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		l.advance()
		queue := l.writers
		if _, writes := l.zscore(l.writers, args[0]); !writes {
			queue = l.waiting
		}
		if !l.heartbeat(queue, args) {
			return int64(0)
		}
		return l.soonest(queue == l.waiting)
	})
}

func renewRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		l.advance()
		if how, _ := l.renew(args[0], number(args[1])); how != 0 {
			return int64(1)
		}
		return l.notHeld(args[2])
	})
}

func inspectRW(r *run, keys, _ []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		l.advance()
		return []any{l.writer, l.fence, max(l.held()-l.now, 0), l.zcard(l.readers), l.zcard(l.writers), l.zcard(l.waiting)}
	})
}

// revoke ends what is held, unless this revocation has done so before.
func (q *queued) revoke(id string, end func()) {
	if q.hget(q.lock, "revoker").is(id) {
		return
	}
	end()
	q.hset(q.lock, "revoker", id, "revoked", q.nextFence(), "fence", itoa(q.fence))
	q.keep(q.lock, false)
}

func revokeRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		l.expire()
		held := int64(0)
		l.revoke(args[0], func() {
			if held = 1; l.writes {
				l.endWriter()
			} else {
				held = l.zcard(l.readers)
			}
			l.del(l.readers)
			l.readUntil = 0
		})
		l.promote()
		return held
	})
}

func downgradeRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		l.advance()
		mode, till := l.renew(args[0], number(args[1]))
		if mode == 0 {
			return l.notHeld(args[2])
		}
		if mode == 'w' && itoa(l.fence) == args[2] {
			l.endWriter()
			l.holdRead(args[0], till)
			l.promote()
		}
		return int64(1)
	})
}

func upgradeRW(r *run, keys, args []string) any {
	return settledRW(r, keys, func(l *rwlock) any {
		l.advance()
		mode, till := l.renew(args[0], number(args[1]))
		if mode == 0 {
			return l.notHeld(args[2])
		}
		if mode == 'w' && itoa(l.fence) == args[2] {
			l.endWriter()
			l.holdRead(args[0], till)
			l.promote()
			mode = 'r'
		}
		if mode == 'r' {
			if l.zcard(l.readers) > 1 || l.zcard(l.writers) > 0 || itoa(l.fence) != args[2] {
				return int64(1)
			}
			l.del(l.readers)
			l.readUntil = 0
			l.holdWrite(args[0], till)
		}
		return l.fence
	})
}
