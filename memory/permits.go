package memory

import "strings"

// The scripts of semaphore/lua, and prelude.lua there, where the keys are described.

// semaphore is one run on a semaphore.
type semaphore struct {
	queued
	holders, queue string
	held           int64
}

func settledPermits(r *run, keys []string, do func(p *semaphore) any) any {
	p := &semaphore{queued: newQueued(r, keys), holders: keys[1], queue: keys[2]}
	return p.settled(func() any { return do(p) })
}

func (p *semaphore) hold(token string, till int64) {
	p.zadd(p.holders, till, token)
	p.keep(p.holders, p.held == 0)
}

// known is how many permits the waiter knows of, and its inbox.
func (w waiter) permits() (known int64, inbox string) {
	count, inbox, is := strings.Cut(w.inbox, ":")
	if !w.known || !is || !digits(count) {
		return 1, ""
	}
	return number(count), inbox
}

// handOn gives permits to those that wait, in their order.
func (p *semaphore) handOn() {
	for p.waits && p.err == nil {
		first := p.front(p.queue)
		if first == "" {
			return
		}
		if known, _ := p.waiter(first).permits(); p.held >= known {
			return
		}
		w := p.leave(first, "")
		p.hold(first, p.lease(w.grace))
		p.held++
		if _, inbox := w.permits(); inbox != "" {
			p.tell(inbox, p.lock+":"+first, w.ticket+":"+itoa(p.fence))
		}
	}
}

// expire ends the leases that have expired, and removes the dead from the queue.
func (p *semaphore) expire() {
	p.held = 0
	if p.highest(p.holders, p.most()) > 0 {
		p.zremUpTo(p.holders, p.now)
		p.held = p.zcard(p.holders)
	}
	p.bury()
}

func (p *semaphore) advance() {
	p.expire()
	p.handOn()
}

func (p *semaphore) renew(token string, length int64) bool {
	if p.held == 0 {
		return false
	}
	till, held := p.zscore(p.holders, token)
	if held {
		p.although()
		p.hold(token, max(till, p.lease(length)))
	}
	return held
}

// ends is in how many ms the first lease ends, or the last.
func (p *semaphore) ends(last bool) int64 {
	all := p.members(p.holders)
	if p.held == 0 || len(all) == 0 {
		return 1
	}
	s := all[0]
	if last {
		s = all[len(all)-1]
	}
	return max(s.score-p.now, 1)
}

// soonest is in how many ms asking again may change something for a waiter.
func (p *semaphore) soonest(token string) int64 { return p.ends(p.front(p.queue) != token) }

func acquirePermit(r *run, keys, args []string) any {
	return settledPermits(r, keys, func(p *semaphore) any {
		token, most, length := args[0], number(args[1]), number(args[2])
		p.advance()
		if p.late(token) {
			return []any{"busy", int64(0)}
		}
		if p.renew(token, length) {
			return p.fence
		}
		if p.held < most && (!p.waits || p.zcard(p.queue) == 0) {
			p.hold(token, p.lease(length))
			return p.fence
		}
		patience := number(args[4])
		if args[3] == "0" || patience <= 0 {
			return []any{"busy", p.ends(false)}
		}
		p.lease(length)
		ticket := p.enqueue(p.queue, token, number(args[3]), patience, number(args[6]), args[1]+":"+args[5])
		if p.held < most && p.front(p.queue) == token {
			p.leave(token, "")
			p.hold(token, p.lease(length))
			return p.fence
		}
		return []any{"queued", p.soonest(token), number(ticket), p.micros}
	})
}

func heartbeatPermit(r *run, keys, args []string) any {
	return settledPermits(r, keys, func(p *semaphore) any {
		p.advance()
		if !p.heartbeat(p.queue, args) {
			return int64(0)
		}
		return p.soonest(args[0])
	})
}

func renewPermit(r *run, keys, args []string) any {
	return settledPermits(r, keys, func(p *semaphore) any {
		p.advance()
		if p.renew(args[0], number(args[1])) {
			return int64(1)
		}
		return p.notHeld(args[2])
	})
}

func releasePermit(r *run, keys, args []string) any {
	return settledPermits(r, keys, func(p *semaphore) any {
		had := p.zrem(p.holders, args[0])
		p.expire()
		if args[2] == "1" {
			p.remember(args[0])
		}
		switch {
		case had != 0:
		case p.waits && p.isAlive(args[0]):
			p.leave(args[0], "")
			had = 1
		default:
			had = p.notHeld(args[1])
		}
		p.handOn()
		return had
	})
}

func revokePermits(r *run, keys, args []string) any {
	return settledPermits(r, keys, func(p *semaphore) any {
		p.expire()
		taken := int64(0)
		p.revoke(args[0], func() {
			taken = p.held
			p.del(p.holders)
			p.held = 0
		})
		p.handOn()
		return taken
	})
}

func inspectPermits(r *run, keys, _ []string) any {
	return settledPermits(r, keys, func(p *semaphore) any {
		p.advance()
		found := []any{p.zcard(p.queue)}
		for _, s := range p.members(p.holders) {
			found = append(found, s.member, max(s.score-p.now, 0))
		}
		return found
	})
}
