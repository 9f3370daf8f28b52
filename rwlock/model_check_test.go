package rwlock

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/queue"
)

// memory is how long a fence is remembered, in ms.
const memory = 600_000

// snapshot is what the server has of the lock.
type snapshot struct {
	at       int64 // by its clock
	hash     map[string]string
	sets     [4]map[string]int64 // readers, writers, waiting, alive
	writersQ []string            // in the order of their tickets
	ttls     []int64             // of the keys there are; -1: none
}

func (s snapshot) readers() map[string]int64 { return s.sets[0] }
func (s snapshot) writers() map[string]int64 { return s.sets[1] }
func (s snapshot) waiting() map[string]int64 { return s.sets[2] }
func (s snapshot) alive() map[string]int64   { return s.sets[3] }
func (s snapshot) writer() string            { return s.hash["writer"] }

func (s snapshot) number(field string) int64 {
	n, _ := strconv.ParseInt(s.hash[field], 10, 64)
	return n
}

// waiter is the grace and the inbox of who is queued.
func (s snapshot) waiter(token string) (grace int64, inbox string) {
	parts := append(strings.SplitN(s.hash["waiter:"+token], ":", 4), "", "", "", "")
	grace, _ = strconv.ParseInt(parts[0], 10, 64)
	return grace, parts[3]
}

// held is the tokens that hold the lock.
func (s snapshot) held() []string {
	held := slices.Collect(maps.Keys(s.readers()))
	if s.writer() != "" {
		held = append(held, s.writer())
	}
	return held
}

// lives tells whether a queued token was believed to live at a time. A token that has acted itself does not count.
func (s snapshot) lives(token string, at int64, actor string) bool {
	return token != actor && s.alive()[token] > at
}

// checkGone: who has given up, and was told so, neither holds nor waits, whatever of it arrives late.
func (w *world) checkGone() {
	for _, token := range append(slices.Collect(maps.Keys(w.now.alive())), w.now.held()...) {
		if w.gone[token] {
			w.Wrong("%s is back after it has given up", token)
		}
	}
}

func (w *world) look(at int64) snapshot {
	ctx := context.Background()
	pipe := w.Redis.Pipeline()
	hash := pipe.HGetAll(ctx, w.lock.Keys[0])
	var sets [4]*redis.ZSliceCmd
	var ttls [5]*redis.Cmd
	for i := range sets {
		sets[i] = pipe.ZRangeWithScores(ctx, w.lock.Keys[i+1], 0, -1)
	}
	for i := range ttls {
		ttls[i] = pipe.Do(ctx, "pttl", w.lock.Keys[i])
	}
	if _, err := pipe.Exec(ctx); err != nil {
		w.Wrong("%v", err)
	}
	s := snapshot{at: at, hash: hash.Val()}
	for i, set := range sets {
		s.sets[i] = make(map[string]int64)
		for _, z := range set.Val() {
			s.sets[i][z.Member.(string)] = int64(z.Score)
			if i == 1 {
				s.writersQ = append(s.writersQ, z.Member.(string))
			}
		}
	}
	for _, ttl := range ttls {
		if n, _ := ttl.Int64(); n != -2 {
			s.ttls = append(s.ttls, n)
		}
	}
	return s
}

// check compares what a script of the token's has left with what was before.
func (w *world) check(at int64, token string, pushed int64) {
	before := w.now
	w.now = w.look(at)
	w.checkExclusion()
	w.checkTrust()
	w.arrivals.Check(w.now.writersQ, func(token string) bool { return before.lives(token, at, "") })
	w.checkOrder(before, token)
	w.checkPhases(before)
	w.checkFences(before)
	w.checkRemains()
	w.checkMessages(before, pushed)
	w.checkGone()
}

func (w *world) checkExclusion() {
	s := w.now
	if s.writer() != "" && len(s.readers()) > 0 {
		w.Wrong("%s writes beside readers %v", s.writer(), s.readers())
	}
	var writer, other *actor
	for _, a := range w.actors {
		if a.stage != holding || a.until <= w.Mono {
			continue
		}
		if a.mode == writing && writer == nil {
			writer = a
		} else {
			other = a
		}
	}
	if writer != nil && other != nil {
		w.Wrong("%s trusts that it writes, and %s that it holds", writer.token, other.token)
	}
}

// checkTrust: who trusts its lease has it.
func (w *world) checkTrust() {
	for _, a := range w.actors {
		if a.stage != holding || a.until <= w.Mono {
			continue
		}
		_, reads := w.now.readers()[a.token]
		if a.mode == writing && w.now.writer() != a.token {
			w.Wrong("%s trusts that it writes, and does not", a.token)
		}
		if a.mode == reading && !reads && w.now.writer() != a.token { // its downgrade may not have arrived
			w.Wrong("%s trusts that it reads, and does not", a.token)
		}
	}
}

// checkOrder: the lock goes to the first writer of the queue, to all readers at once, and past the queue to nobody.
func (w *world) checkOrder(before snapshot, token string) {
	s := w.now
	first := ""
	for _, q := range before.writersQ {
		if before.lives(q, s.at, "") && (q != token || s.writer() == q) {
			first = q
			break
		}
	}
	_, queued := before.writers()[s.writer()]
	queued = queued && before.lives(s.writer(), s.at, "")
	switch {
	case s.writer() == "" || s.writer() == before.writer():
	case queued && s.writer() != first:
		w.Wrong("%s writes before %s, which came first", s.writer(), first)
	case !queued && first != "":
		w.Wrong("%s writes, past %s in the queue", s.writer(), first)
	}
	for reader := range s.readers() {
		_, read := before.readers()[reader]
		_, waited := before.waiting()[reader]
		waited = waited && before.lives(reader, s.at, "")
		if !read && !waited && reader != before.writer() && first != "" {
			w.Wrong("%s reads, past writer %s in the queue", reader, first)
		}
		for other := range s.waiting() {
			if !read && waited && before.lives(other, s.at, token) {
				w.Wrong("%s was admitted, and %s was not", reader, other)
			}
		}
	}
	if len(s.held()) == 0 && len(s.writers())+len(s.waiting()) > 0 {
		w.Wrong("the lock is free, and writers %v and readers %v wait", s.writers(), s.waiting())
	}
	if s.writer() == "" && len(s.writers()) == 0 && len(s.waiting()) > 0 {
		w.Wrong("readers %v wait for no writer", s.waiting())
	}
}

// checkPhases: a reader waits for at most one writer.
func (w *world) checkPhases(before snapshot) {
	seen := make(map[string]map[int64]bool)
	for reader := range w.now.waiting() {
		turns := w.phases[reader]
		if turns == nil || !before.lives(reader, w.now.at, "") { // it has queued, perhaps anew
			turns = make(map[int64]bool)
		}
		if w.now.writer() != "" {
			turns[w.now.number("fence")] = true
		}
		if len(turns) > 1 {
			w.Wrong("reader %s waits for writers %v", reader, turns)
		}
		seen[reader] = turns
	}
	w.phases = seen
}

// checkFences: each writer's fence is larger than all before.
func (w *world) checkFences(before snapshot) {
	fence := w.now.number("fence")
	if fence < w.fence || w.now.writer() != "" && w.now.writer() != before.writer() && fence <= w.fence {
		w.Wrong("fence %d of %s comes after %d", fence, w.now.writer(), w.fence)
	}
	w.fence = max(w.fence, fence)
	for _, a := range w.actors {
		if a.stage == holding && a.until > w.Mono && a.mode == writing && a.fence != fence {
			w.Wrong("%s has fence %d, the lock %d", a.token, a.fence, fence)
		}
	}
}

// checkRemains: what has expired is gone, nothing lasts longer than was asked for, and no key is for ever.
func (w *world) checkRemains() {
	s := w.now
	longest := s.number("longest")
	lasts := func(what, token string, until, most int64) {
		if until <= s.at || until > s.at+most {
			w.Wrong("%s %s lasts %d ms, at most %d", what, token, until-s.at, most)
		}
	}
	if s.writer() != "" {
		lasts("writer", s.writer(), s.number("deadline"), longest)
		if s.number("kept") < s.number("deadline")+memory {
			w.Wrong("the hash is kept until %d, the lease until %d", s.number("kept"), s.number("deadline"))
		}
	}
	for token, until := range s.readers() {
		lasts("reader", token, until, longest)
	}
	for token, until := range s.alive() {
		lasts("waiter", token, until, queue.LongestGrace.Milliseconds())
	}
	if len(s.alive()) != len(s.writers())+len(s.waiting()) {
		w.Wrong("%v are alive, of writers %v and readers %v", s.alive(), s.writers(), s.waiting())
	}
	for field := range s.hash {
		if token, ok := strings.CutPrefix(field, "waiter:"); ok && s.alive()[token] == 0 {
			w.Wrong("%s is left of a waiter", field)
		}
	}
	for _, ttl := range s.ttls {
		if ttl < longest {
			w.Wrong("a key has a TTL of %d ms, and the longest lease is %d", ttl, longest)
		}
	}
}

// until is when the last lease ends.
func (s snapshot) until() int64 {
	if s.writer() != "" {
		return s.number("deadline")
	}
	return slices.Max(append(slices.Collect(maps.Values(s.readers())), 0))
}

// hastens tells whether the first writer of the queue may have to be told that what it waits for ends sooner than it knows, and
// before its next heartbeat; and whether it must be, as far as can be seen from here.
func (s snapshot) hastens(before snapshot) (may, must bool) {
	first := slices.IndexFunc(s.writersQ, func(token string) bool { return before.lives(token, s.at, "") }) // not who asks anew
	if first < 0 {
		return false, false
	}
	grace, inbox := before.waiter(s.writersQ[first])
	if inbox == "" {
		return false, false
	}
	sooner := s.until() < min(before.until(), s.at+before.number("longest"))
	return true, sooner && 3*(s.until()-s.at) < grace
}

// checkMessages: one for the process of each writer that was granted the lock, one for each process with granted readers, and one
// for the first writer if what it waits for ends sooner.
func (w *world) checkMessages(before snapshot, pushed int64) {
	told := make(map[string]bool)
	for token := range before.alive() {
		_, inbox := before.waiter(token)
		if !before.lives(token, w.now.at, "") {
			continue
		}
		if _, reads := w.now.readers()[token]; reads && inbox != "" {
			told[inbox] = true
		}
		if w.now.writer() == token && inbox != "" {
			told["of "+token] = true
		}
	}
	most, least := int64(len(told)), int64(len(told))
	may, must := w.now.hastens(before)
	if may {
		most++
	}
	if must {
		least++
	}
	if pushed < least || pushed > most {
		w.Wrong("%d messages for %v, and the first writer (may: %v, must: %v)", pushed, told, may, must)
	}
}

// settle ends a run: everybody crashes, and when all leases are over nothing is left but what the fence needs.
func (w *world) settle() {
	for range 3 {
		w.Mono += w.now.number("longest") + queue.LongestGrace.Milliseconds() + 1
		w.Run(w.lock.Inspecting(), "")
	}
	for _, set := range w.now.sets {
		if len(set) > 0 {
			w.Wrong("%v is left at the end", set)
		}
	}
	for field := range w.now.hash {
		if !slices.Contains([]string{"fence", "longest", "ticket", "asked", "revoked", "revoker", "gone", "solo", "kept"}, field) {
			w.Wrong("%s is left at the end", field)
		}
	}
}
