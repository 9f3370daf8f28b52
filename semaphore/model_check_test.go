package semaphore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/queue"
)

// snapshot is what the server has of the semaphore.
type snapshot struct {
	at    int64 // by its clock
	hash  map[string]string
	sets  [3]map[string]int64 // holders, queue, alive
	queue []string            // in the order of their tickets
	ttls  []int64             // of the keys there are; -1: none
}

func (s snapshot) holders() map[string]int64 { return s.sets[0] }
func (s snapshot) alive() map[string]int64   { return s.sets[2] }

func (s snapshot) number(field string) int64 {
	n, _ := strconv.ParseInt(s.hash[field], 10, 64)
	return n
}

// waiter is how many permits one that is queued knows of, and its inbox.
func (s snapshot) waiter(token string) (permits int, inbox string) {
	parts := append(strings.SplitN(s.hash["waiter:"+token], ":", 5), "", "", "", "", "")
	permits, _ = strconv.Atoi(parts[3])
	return permits, parts[4]
}

func (s snapshot) lives(token string, at int64) bool { return s.alive()[token] > at }

func (w *world) look(at int64) snapshot {
	ctx := context.Background()
	pipe := w.Redis.Pipeline()
	hash := pipe.HGetAll(ctx, w.sem.Keys[0])
	var sets [3]*redis.ZSliceCmd
	var ttls [4]*redis.Cmd
	for i := range sets {
		sets[i] = pipe.ZRangeWithScores(ctx, w.sem.Keys[i+1], 0, -1)
	}
	for i := range ttls {
		ttls[i] = pipe.Do(ctx, "pttl", w.sem.Keys[i])
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
				s.queue = append(s.queue, z.Member.(string))
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
	w.checkOrder(before, token)
	w.arrivals.Check(w.now.queue, func(token string) bool { return before.lives(token, at) })
	w.checkRemains()
	w.checkMessages(before, pushed)
	w.checkGone()
}

// checkExclusion: no more hold, or trust that they do, than there are permits; and who trusts has one.
func (w *world) checkExclusion() {
	if n := len(w.now.holders()); n > w.most {
		w.Wrong("%d hold %d permits", n, w.most)
	}
	trust := 0
	for _, a := range w.actors {
		if a.stage != holding || a.until <= w.Mono {
			continue
		}
		if trust++; w.now.holders()[a.token] == 0 {
			w.Wrong("%s trusts that it has a permit, and has none", a.token)
		}
	}
	if trust > w.most {
		w.Wrong("%d trust that they have one of %d permits", trust, w.most)
	}
}

// checkOrder: permits go to the first of the queue, past the queue to nobody, and none is left when the first could have it.
func (w *world) checkOrder(before snapshot, token string) {
	s := w.now
	granted := func(id string) bool { return before.holders()[id] == 0 && s.holders()[id] != 0 }
	for i, id := range before.queue {
		if !before.lives(id, s.at) || !granted(id) {
			continue
		}
		for _, first := range before.queue[:i] {
			if before.lives(first, s.at) && first != token && !granted(first) {
				w.Wrong("%s has a permit before %s, which came first", id, first)
			}
		}
	}
	if token != "" && granted(token) && !before.lives(token, s.at) {
		for _, other := range before.queue {
			if other != token && before.lives(other, s.at) && s.alive()[other] != 0 && !w.arrivals.MayPass(token, other) {
				w.Wrong("%s has a permit, past %s in the queue", token, other)
			}
		}
	}
	if len(s.queue) == 0 {
		return
	}
	if permits, _ := s.waiter(s.queue[0]); len(s.holders()) < permits {
		w.Wrong("%d of %d permits are held, and %s waits", len(s.holders()), permits, s.queue[0])
	}
}

// checkRemains: what has expired is gone, nothing lasts longer than was asked for, and no key is for ever.
func (w *world) checkRemains() {
	s := w.now
	longest := s.number("longest")
	for token, until := range s.holders() {
		if until <= s.at || until > s.at+longest {
			w.Wrong("holder %s lasts %d ms, at most %d", token, until-s.at, longest)
		}
	}
	for token, until := range s.alive() {
		if until <= s.at || until > s.at+queue.LongestGrace.Milliseconds() {
			w.Wrong("waiter %s lasts %d ms", token, until-s.at)
		}
	}
	if len(s.alive()) != len(s.queue) {
		w.Wrong("%v are alive, of %v", s.alive(), s.queue)
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

// checkMessages: one for each waiter that was granted a permit.
func (w *world) checkMessages(before snapshot, pushed int64) {
	told := 0
	for token := range before.alive() {
		_, inbox := before.waiter(token)
		if before.lives(token, w.now.at) && w.now.holders()[token] != 0 && inbox != "" {
			told++
		}
	}
	if int(pushed) != told {
		w.Wrong("%d messages, for %d that were granted a permit", pushed, told)
	}
}

// checkGone: who has given up, and was told so, neither holds nor waits, whatever of it arrives late.
func (w *world) checkGone() {
	for _, token := range append(slices.Collect(maps.Keys(w.now.alive())), slices.Collect(maps.Keys(w.now.holders()))...) {
		if w.gone[token] {
			w.Wrong("%s is back after it has given up", token)
		}
	}
}

// settle ends a run: everybody crashes, and when all leases are over nothing is left but what the semaphore remembers.
func (w *world) settle() {
	for range 3 {
		w.Mono += w.now.number("longest") + queue.LongestGrace.Milliseconds() + 1
		w.Run(w.sem.Inspecting(), "")
	}
	for _, set := range w.now.sets {
		if len(set) > 0 {
			w.Wrong("%v is left at the end", set)
		}
	}
	for field := range w.now.hash {
		if !slices.Contains([]string{"fence", "longest", "ticket", "asked", "revoked", "revoker", "gone", "kept"}, field) {
			w.Wrong("%s is left at the end", field)
		}
	}
}
