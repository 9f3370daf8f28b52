package mutex

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
)

var longestGrace = queue.Grace(time.Hour)

// memory is how long a fence is remembered, in ms.
const memory = 600_000

// snapshot is what the server has of the lock.
type snapshot struct {
	at    int64 // by its clock
	hash  map[string]string
	queue []string // ids, in the order of their tickets
	ttls  []int64  // of the keys there are; -1: none
}

func (s snapshot) token() string { return s.hash["token"] }

func (s snapshot) number(field string) int64 {
	n, _ := strconv.ParseInt(s.hash[field], 10, 64)
	return n
}

// lease is when the holder's lease ends, and its inbox.
func (s snapshot) lease() (deadline int64, inbox string) {
	var seconds, micros, length int64
	_, _ = fmt.Sscan(s.hash["lease"], &seconds, &micros, &length) // the inbox may be empty
	return seconds*1000 + micros/1000 + length, s.hash["lease"][strings.LastIndex(s.hash["lease"], " ")+1:]
}

func (s snapshot) live() bool {
	deadline, _ := s.lease()
	return deadline > s.at
}

func (s snapshot) holds(id, token string) bool {
	return s.token() == token && (id == token || strings.Contains(" "+s.hash["holds"], " "+id+" "))
}

// waiter is what is known of an id that is queued.
func (s snapshot) waiter(id string) (alive int64, inbox, token string) {
	parts := strings.Split(s.hash["waiter:"+id], " ")
	if len(parts) != 4 {
		return 0, "", ""
	}
	alive, _ = strconv.ParseInt(parts[0], 10, 64)
	return alive, parts[2], parts[3]
}

func (s snapshot) queued(id string) bool {
	_, _, token := s.waiter(id)
	return token != ""
}

// looked are the commands that a snapshot is made of.
type looked struct {
	hash   *redis.MapStringStringCmd
	queued *redis.StringSliceCmd
	ttls   []*redis.Cmd
}

func (w *world) look(ctx context.Context, pipe redis.Pipeliner) {
	keys := keysOf(w.key)
	w.looked = looked{hash: pipe.HGetAll(ctx, w.key), queued: pipe.ZRange(ctx, keys[1], 0, -1)}
	for _, key := range keys {
		w.looked.ttls = append(w.looked.ttls, pipe.Do(ctx, "pttl", key))
	}
}

func (l looked) snapshot(at int64) snapshot {
	s := snapshot{at: at, hash: l.hash.Val(), queue: l.queued.Val()}
	for _, ttl := range l.ttls {
		if n, _ := ttl.Int64(); n != -2 {
			s.ttls = append(s.ttls, n)
		}
	}
	return s
}

// check compares what a script of the id's has left with what was before.
func (w *world) check(at int64, id string, messages int64) {
	before := w.now
	w.now = w.looked.snapshot(at)
	w.checkTrust()
	w.arrivals.Check(w.now.queue, before.queued)
	w.checkOrder(before, id)
	w.checkFences(before)
	w.checkRemains()
	w.checkMessages(before, id, messages)
	w.checkGone()
	w.checkParked()
}

// checkGone: an id that has given up, and knows it, neither holds nor waits, whatever request of it arrives late.
func (w *world) checkGone() {
	for id, token := range w.gone {
		if w.now.holds(id, token) || w.now.queued(id) {
			w.Wrong("%s is back after it has given up", id)
		}
	}
}

// checkTrust: an actor that trusts its lease has it, with its fence. As there is one token, nobody else has it.
func (w *world) checkTrust() {
	for _, a := range w.actors {
		if a.stage != holding || a.until <= w.Mono {
			continue
		}
		if deadline, _ := w.now.lease(); !w.now.holds(a.id, a.token) || deadline <= w.now.at {
			w.Wrong("%s trusts that it holds, and does not", a.id)
		}
		if a.fence != w.now.number("fence") {
			w.Wrong("%s has fence %d, the lock %d", a.id, a.fence, w.now.number("fence"))
		}
	}
}

// granted is who was given the lock from the queue, if anybody.
func (w *world) granted(before snapshot) string {
	for _, id := range before.queue {
		_, _, token := before.waiter(id)
		if w.now.number("fence") > before.number("fence") && w.now.holds(id, token) && !w.now.queued(id) {
			return id
		}
	}
	return ""
}

// checkOrder: the lock goes to the first of the queue that lives, and past the queue only to the successor that was named, and to an id
// that asks now and came earlier.
func (w *world) checkOrder(before snapshot, asking string) {
	s := w.now
	first := ""
	for _, id := range before.queue {
		if alive, _, _ := before.waiter(id); alive > s.at && (id != asking || s.holds(id, id)) {
			first = id
			break
		}
	}
	granted := w.granted(before)
	switch {
	case s.token() == "" || s.number("fence") == before.number("fence") || w.successors[s.token()]:
	case granted == "" && first != "" && s.queued(first) && !w.arrivals.MayPass(asking, first):
		w.Wrong("%s holds, past %s in the queue", s.token(), first)
	case granted != "" && granted != asking && granted != first:
		w.Wrong("%s holds before %q, which came first", granted, first)
	}
	if s.token() == "" && len(s.queue) > 0 {
		w.Wrong("the lock is free, and %v wait", s.queue)
	}
}

// checkFences: each fence is larger than all before.
func (w *world) checkFences(before snapshot) {
	fence := w.now.number("fence")
	changed := w.now.token() != "" && w.now.token() != before.token() && w.now.token() != before.token()+parkedMark
	if fence < w.fence || changed && fence <= w.fence {
		w.Wrong("fence %d of %s comes after %d", fence, w.now.token(), w.fence)
	}
	w.fence = max(w.fence, fence)
}

// checkRemains: nothing lasts longer than was asked for, nothing is left of an id that no longer waits, and every key has a TTL.
func (w *world) checkRemains() {
	s := w.now
	deadline, _ := s.lease()
	if s.token() != "" && s.number("kept") < deadline+memory {
		w.Wrong("the hash is kept until %d, the lease until %d", s.number("kept"), deadline)
	}
	waiters := 0
	for field := range s.hash {
		if strings.HasPrefix(field, "waiter:") {
			waiters++
		}
	}
	for _, id := range s.queue {
		if !s.queued(id) {
			w.Wrong("%s is queued, and nothing is known of it", id)
		}
		if s.holds(id, id) {
			w.Wrong("%s holds, and is queued", id)
		}
	}
	if waiters != len(s.queue) {
		w.Wrong("%d are known, and %v queued", waiters, s.queue)
	}
	if len(s.queue) > 0 && s.number("ticket") == 0 {
		w.Wrong("%v are queued without a ticket", s.queue)
	}
	for _, ttl := range s.ttls {
		if ttl <= 0 {
			w.Wrong("a key has no TTL")
		}
	}
}

// checkMessages: the waiter that got the lock from the queue gets a message, and so does the holder that lost it by a revoke. The
// actor that asks may get one too, as it may be the first of the queue.
func (w *world) checkMessages(before snapshot, asking string, messages int64) {
	least, most := int64(0), int64(0)
	id := w.granted(before)
	_, successor := w.successors[id] // that its process has named, or nobody
	if id != "" && id != asking && !successor {
		if _, inbox, _ := before.waiter(id); inbox != "" {
			least, most = 1, 1
		}
	} else if w.now.number("fence") > before.number("fence") {
		most = 1
	}
	if deadline, inbox := before.lease(); w.revokes && before.token() != "" && deadline > w.now.at && inbox != "" {
		least, most = least+1, most+1
	}
	if messages < least || messages > most {
		w.Wrong("%d messages, and not %d to %d", messages, least, most)
	}
}

// settle ends a run: everybody crashes, and when all leases are over the next gets the lock at once, and nothing is left
// but what the fence needs.
func (w *world) settle() {
	for _, a := range w.actors {
		a.stage = idle
	}
	w.Mono += 60_000 // also if the clock was set back
	last := calls{keys: keysOf(w.key), id: "last", token: "last"}
	for range 2 {
		w.Mono += 60_000
		w.Run(w.edited(last.asking(time.Second, 0, 0, "")), last.id)
	}
	if w.now.token() != last.id {
		w.Wrong("%s has the lock at the end", w.now.token())
	}
	w.Run(w.edited(last.releasing(successor{}, false)), last.id)
	if len(w.now.queue) > 0 {
		w.Wrong("%v are queued at the end", w.now.queue)
	}
	for _, field := range []string{"ticket", "holds"} {
		if w.now.hash[field] != "" {
			w.Wrong("%s is left at the end", field)
		}
	}
}
