package memory

import (
	"strconv"
	"strings"
)

// The scripts of mutex/lua, and prelude.lua there, where the keys are described. What they do about a clock that was set back is left out.

// exclusive is one run on a lock.
type exclusive struct {
	*run
	key, queue, gone string

	token, holds, leaseText string
	fence, kept, ticket     int64
	goneUntil, asked        int64
	queues                  bool  // it has a ticket
	free                    bool  // it says so
	last                    maybe // the id that has just given it up
	ttl                     int64 // of the hash; 0: as it is
}

func settledMutex(r *run, keys []string, do func(m *exclusive) any) any {
	f := r.hmget(keys[0], "token", "fence", "lease", "kept", "ticket", "holds", "gone", "asked")
	if r.err != nil {
		return r.err
	}
	m := &exclusive{
		run: r, key: keys[0], token: f[0].text, fence: f[1].number(), leaseText: f[2].text, kept: f[3].number(),
		ticket: f[4].number(), holds: f[5].text, goneUntil: f[6].number(), asked: f[7].number(), queues: f[4].there,
		free: f[0].is("") && f[1].there && f[3].there,
	}
	if len(keys) > 1 {
		m.queue = keys[1]
	}
	if len(keys) > 2 {
		m.gone = keys[2]
	}
	reply := do(m)
	err := r.err
	r.err = nil
	if m.ttl != 0 {
		r.pexpire(m.key, m.ttl)
	}
	if err != nil {
		return err
	}
	return reply
}

// parse returns the deadline, the length and the inbox of the lease.
func (m *exclusive) parse() (deadline, length int64, inbox string) {
	parts := strings.Split(m.leaseText, " ")
	if len(parts) != 4 {
		return 0, 0, ""
	}
	length = number(parts[2])
	return number(parts[0])*1000 + number(parts[1])/1000 + length, length, parts[3]
}

// lease is one that begins now.
func (m *exclusive) lease(length int64, inbox string) string {
	return itoa(m.micros/1e6) + " " + itoa(m.micros%1e6) + " " + itoa(length) + " " + inbox
}

// keep makes the hash outlive the lease.
func (m *exclusive) keep(length int64) {
	if m.err == nil && m.kept < m.now+length+remembered {
		m.ttl = length + 2*remembered
		m.kept = m.now + m.ttl
		m.hset(m.key, "kept", itoa(m.kept))
	}
}

func (m *exclusive) although() { m.hdel(m.key, "") } // memory is full

// extend sets the holder's lease.
func (m *exclusive) extend(inbox string, length int64) {
	if m.holds != "" {
		deadline, was, _ := m.parse()
		length = max(length, min(deadline-m.now, was))
	}
	if m.err != nil {
		return
	}
	m.ttl = length + 2*remembered
	m.kept = m.now + m.ttl
	m.although()
	m.hset(m.key, "lease", m.lease(length, inbox), "kept", itoa(m.kept))
}

// give gives the lock to an id, and returns the fence, or why it cannot.
func (m *exclusive) give(id, token, inbox string, length int64) (fence int64, err error) {
	fence = max(m.fence+1, m.micros)
	fields := []string{"token", token, "fence", itoa(fence), "lease", m.lease(length, inbox)}
	if token != id {
		fields = append(fields, "holds", id+" ", "last", m.last.text)
	} else if m.holds != "" || m.last.there {
		fields = append(fields, "holds", "", "last", m.last.text)
	}
	if err := m.try(func() { m.hset(m.key, fields...) }); err != nil {
		return 0, err
	}
	m.keep(length)
	return fence, nil
}

// promote gives the lock to the first in the queue that is alive, and tells it. It returns its id; empty: nobody is.
func (m *exclusive) promote() (first string, fence int64, err error) {
	for m.err == nil {
		id := m.front(m.queue)
		if id == "" {
			m.hdel(m.key, "ticket", "asked")
			break
		}
		m.zrem(m.queue, id)
		field := "waiter:" + id
		w := strings.Split(m.hget(m.key, field).text, " ")
		m.hdel(m.key, field)
		if len(w) == 4 && w[3] != "" && number(w[0]) > m.now {
			fence, err := m.give(id, w[3], w[2], number(w[1]))
			if err == nil && w[2] != "" {
				m.publish(w[2], strconv.Itoa(len(id))+":"+id+itoa(fence))
			}
			return id, fence, err
		}
	}
	return "", 0, m.err
}

// has returns whether the id has the lock: as itself, or as one of the holds of the owner that the token names.
func (m *exclusive) has(id, token string) bool {
	return m.token == token && (token == id || strings.Contains(" "+m.holds, " "+id+" "))
}

// leave removes the id from the queue, and returns whether it was there.
func (m *exclusive) leave(id string) bool {
	return m.hdel(m.key, "waiter:"+id) == 1 && m.zrem(m.queue, id) == 1
}

// late returns whether the id has given up.
func (m *exclusive) late(id string) bool {
	if m.goneUntil <= m.now {
		return false
	}
	_, gone := m.zscore(m.gone, id)
	return gone
}

// remember notes that the id has given up.
func (m *exclusive) remember(id string) {
	m.zremUpTo(m.gone, m.now)
	until := m.now + remembered
	if m.try(func() { m.zadd(m.gone, until, id) }) != nil {
		return
	}
	m.pexpire(m.gone, 2*remembered)
	m.goneUntil = until
	_ = m.try(func() { m.hset(m.key, "gone", itoa(until)) }) // a late request costs one lease
	m.keep(0)
}

func lock(r *run, keys, args []string) any {
	return settledMutex(r, keys, func(m *exclusive) any {
		id, token := args[0], args[0]
		if len(args) > 6 {
			token = args[6]
		}
		return m.ask(id, token, number(args[1]), args)
	})
}

func (m *exclusive) ask(id, token string, length int64, args []string) any {
	inbox := args[4]
	if m.isCommon(id, length, args) {
		m.hset(m.key, "token", id, "fence", itoa(m.micros), "lease", m.lease(length, inbox))
		return m.micros
	}
	if m.late(id) {
		return []any{int64(0), int64(0), m.fence, m.micros}
	}
	if m.goneUntil != 0 && m.goneUntil <= m.now {
		m.hdel(m.key, "gone")
	}
	if m.token == "" && m.ticket == 0 {
		return m.given(m.give(id, token, inbox, length))
	}
	deadline, was, _ := m.parse()
	left := min(deadline-m.now, was)
	held := m.token != "" && left > 0
	if again := m.has(id, token); again || held && m.token == token {
		if m.ticket != 0 {
			m.leave(id)
		}
		if again {
			m.extend(inbox, length)
			return m.fence
		}
		m.hset(m.key, "holds", m.holds+id+" ")
		return []any{int64(1), left, m.fence, m.micros}
	}
	if grace, patience := number(args[2]), number(args[3]); grace > 0 && patience > 0 {
		if err := m.enqueue(id, token, length, min(grace, patience), args); err != nil {
			return err
		}
	}
	if held {
		return []any{int64(0), left, m.fence, m.micros}
	}
	first, fence, err := m.promote()
	switch {
	case err != nil:
		return err
	case first == id:
		m.extend(inbox, length)
		return fence
	case first == "":
		return m.given(m.give(id, token, inbox, length))
	}
	return []any{int64(0), length, fence, m.micros}
}

// isCommon tells whether this is the common case, as lock_free.lua has it.
func (m *exclusive) isCommon(id string, length int64, args []string) bool {
	if !m.free || m.holds != "" || len(args) > 6 || m.fence >= m.micros || (m.kept-remembered-length)*1000 <= m.micros {
		return false
	}
	return m.goneUntil == 0 || m.goneUntil*1000 > m.micros && !m.late(id)
}

func (m *exclusive) given(fence int64, err error) any {
	if err != nil {
		return err
	}
	return fence
}

// enqueue gives the id a place in the queue, or notes that it is alive.
func (m *exclusive) enqueue(id, token string, length, lives int64, args []string) error {
	waiter := itoa(m.now+lives) + " " + args[2] + " " + args[4] + " " + token
	ticket, came, waited := m.ticket+max(m.micros-m.asked, 1), number(args[5]), int64(0)
	if came > 0 {
		waited = max(m.micros-came, 0)
	}
	added := int64(0)
	if err := m.try(func() { added = m.zaddNew(m.queue, ticket-waited, id) }); err != nil {
		if _, queued := m.zscore(m.queue, id); !queued {
			return err
		}
		m.although()
	}
	if added == 1 || m.ticket == 0 {
		m.ticket = ticket
		m.hset(m.key, "waiter:"+id, waiter, "ticket", itoa(ticket), "asked", itoa(m.micros))
	} else {
		m.hset(m.key, "waiter:"+id, waiter)
	}
	m.pexpire(m.queue, length+remembered)
	return nil
}

func unlock(r *run, keys, args []string) any {
	return settledMutex(r, keys, func(m *exclusive) any {
		id, token := args[0], args[0]
		if len(args) > 1 {
			token = args[1]
		}
		if len(args) == 1 && m.token == id && !m.queues && m.holds == "" { // the common case
			m.clear(id, "token")
			return int64(1)
		}
		if len(args) > 2 && args[2] == "1" {
			m.remember(id)
		}
		var next []string // id, its lease, its inbox, whether it goes before those in the queue
		if len(args) > 3 && !m.late(args[3]) {
			next = args[3:]
		}
		if !m.has(id, token) {
			return m.unheld(id, token, next)
		}
		if token != id {
			m.holds = strings.TrimPrefix(strings.Replace(" "+m.holds, " "+id+" ", " ", 1), " ")
			if m.holds != "" {
				m.although()
				m.hset(m.key, "holds", m.holds, "last", id)
				return int64(1)
			}
		}
		m.last = maybe{id, true}
		return m.passOn(id, next)
	})
}

// unheld is an unlock by one that does not hold.
func (m *exclusive) unheld(id, token string, next []string) any {
	if m.ticket != 0 && m.leave(id) {
		return int64(0)
	}
	more := m.hmget(m.key, "last", "revoked")
	switch {
	case more[0].is(id) && next != nil && m.token == next[0]:
		return m.fence
	case more[0].is(id):
		return int64(1)
	case more[1].is(token):
		return int64(-1)
	}
	return int64(0)
}

// passOn gives the lock to the next, or frees it.
func (m *exclusive) passOn(id string, next []string) any {
	if before := next != nil && next[3] == "1"; m.ticket != 0 && !before {
		if first, _, _ := m.promote(); first != "" { // if it fails, the lock is free
			return int64(1)
		}
	}
	if next != nil {
		if m.ticket != 0 {
			m.leave(next[0])
		}
		if fence, err := m.give(next[0], next[0], next[2], number(next[1])); err == nil {
			return fence
		}
	}
	m.clear(id, "token", "holds")
	return int64(1)
}

// clear empties the fields of a holder, or removes them where memory is full, which does not matter to what has removed something.
func (m *exclusive) clear(last string, fields ...string) {
	pairs := []string{"last", last}
	for _, field := range fields {
		pairs = append(pairs, field, "")
	}
	if m.try(func() { m.hset(m.key, pairs...) }) != nil {
		m.hdel(m.key, fields...)
		m.hset(m.key, "last", last)
	}
}

func park(r *run, keys, args []string) any {
	return settledMutex(r, keys, func(m *exclusive) any {
		id, parked := args[0], args[0]+"+"
		if m.token == parked {
			return int64(1)
		}
		if args[2] == "1" {
			m.remember(id)
		}
		if !m.has(id, id) {
			return -count(m.hget(m.key, "revoked").is(id))
		}
		m.although()
		m.hset(m.key, "token", parked)
		m.extend("", number(args[1]))
		return int64(1)
	})
}

func renewMutex(r *run, keys, args []string) any {
	return settledMutex(r, keys, func(m *exclusive) any {
		if !m.has(args[0], args[1]) {
			return -count(m.hget(m.key, "revoked").is(args[1]))
		}
		_, _, inbox := m.parse()
		if number(args[3]) > m.fence {
			m.although()
			m.hset(m.key, "fence", args[3])
		}
		m.extend(inbox, number(args[2]))
		return int64(1)
	})
}

func revokeMutex(r *run, keys, args []string) any {
	return settledMutex(r, keys, func(m *exclusive) any {
		deadline, _, inbox := m.parse()
		if m.token == "" || deadline <= m.now {
			return int64(0)
		}
		m.although()
		m.hset(m.key, "token", "", "holds", "", "revoked", m.token)
		if inbox != "" {
			m.publish(inbox, strconv.Itoa(len(args[0]))+":"+args[0]+m.token)
		}
		m.holds = ""
		if m.ticket != 0 {
			_, _, _ = m.promote() // if it fails, the lock is free
		}
		return int64(1)
	})
}

func inspectMutex(r *run, keys, _ []string) any {
	return settledMutex(r, keys, func(m *exclusive) any {
		deadline, length, _ := m.parse()
		left, holds := min(deadline-m.now, length), int64(1)
		if m.token == "" || left <= 0 {
			m.token, left, holds = "", 0, 0
		} else if m.holds != "" {
			holds = int64(strings.Count(m.holds, " "))
		}
		return []any{m.token, m.fence, left, holds, m.zcard(m.queue)}
	})
}
