package model

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
)

// Snapshot is what the server has of a Queued's lock.
type Snapshot struct {
	At    int64 // by its clock
	Hash  map[string]string
	Sets  []map[string]int64 // of the keys between the first and the last: the last of them has who is alive
	Queue []string           // of the third key, in the order of their tickets
	ttls  []int64            // of the keys there are; -1: none
}

// Alive returns the queued tokens, and until when they are believed to live.
func (s Snapshot) Alive() map[string]int64 { return s.Sets[len(s.Sets)-1] }

// Lives tells whether a queued token was believed to live at a time.
func (s Snapshot) Lives(token string, at int64) bool { return s.Alive()[token] > at }

// Number returns the number in a field.
func (s Snapshot) Number(field string) int64 {
	n, _ := strconv.ParseInt(s.Hash[field], 10, 64)
	return n
}

// Waiter is what is known of one that is queued: so many parts, or empty ones.
func (s Snapshot) Waiter(token string, parts int) []string {
	return append(strings.SplitN(s.Hash["waiter:"+token], ":", parts), make([]string, parts)...)
}

// looked are the commands that a Snapshot is made of.
type looked struct {
	hash *redis.MapStringStringCmd
	sets []*redis.ZSliceCmd
	ttls []*redis.Cmd
}

func (w *Queued) look(ctx context.Context, pipe redis.Pipeliner) {
	keys := w.Keys[:len(w.Keys)-1]
	w.looked = looked{hash: pipe.HGetAll(ctx, keys[0])}
	for _, key := range keys[1:] {
		w.looked.sets = append(w.looked.sets, pipe.ZRangeWithScores(ctx, key, 0, -1))
	}
	for _, key := range keys {
		w.looked.ttls = append(w.looked.ttls, pipe.Do(ctx, "pttl", key))
	}
}

func (l looked) snapshot(at int64) Snapshot {
	s := Snapshot{At: at, Hash: l.hash.Val()}
	for i, set := range l.sets {
		s.Sets = append(s.Sets, make(map[string]int64))
		for _, z := range set.Val() {
			s.Sets[i][z.Member.(string)] = int64(z.Score)
			if i == 1 {
				s.Queue = append(s.Queue, z.Member.(string))
			}
		}
	}
	for _, ttl := range l.ttls {
		if n, _ := ttl.Int64(); n != -2 {
			s.ttls = append(s.ttls, n)
		}
	}
	return s
}

// check compares what a script of the token's has left with what was before.
func (w *Queued) check(at int64, token string, sent int64) {
	before := w.Now
	w.Now = w.looked.snapshot(at)
	w.Compare(before, token, sent)
	w.Arrivals.Check(w.Now.Queue, func(token string) bool { return before.Lives(token, at) })
	w.checkRemains()
	w.checkGone()
}

// checkRemains: what has expired is gone, nothing lasts longer than was asked for, and no key is for ever.
func (w *Queued) checkRemains() {
	s := w.Now
	longest := s.Number("longest")
	for token, until := range w.Held(s) {
		w.checkLasts("holder", token, until, longest)
	}
	queued := 0
	for _, tokens := range s.Sets[1 : len(s.Sets)-1] {
		queued += len(tokens)
	}
	for token, until := range s.Alive() {
		w.checkLasts("waiter", token, until, s.Number("grace"))
	}
	if len(s.Alive()) != queued {
		w.Wrong("%v are alive, of %v", s.Alive(), s.Sets)
	}
	for field := range s.Hash {
		if token, ok := strings.CutPrefix(field, "waiter:"); ok && s.Alive()[token] == 0 {
			w.Wrong("%s is left of a waiter", field)
		}
	}
	for _, ttl := range s.ttls {
		if ttl < longest {
			w.Wrong("a key has a TTL of %d ms, and the longest lease is %d", ttl, longest)
		}
	}
}

func (w *Queued) checkLasts(what, token string, until, most int64) {
	if until <= w.Now.At || until > w.Now.At+most {
		w.Wrong("%s %s lasts %d ms, at most %d", what, token, until-w.Now.At, most)
	}
}

// checkGone: a token that has given up, and has the reply, neither holds nor waits, whichever of its requests arrive late.
func (w *Queued) checkGone() {
	for _, token := range slices.AppendSeq(slices.Collect(maps.Keys(w.Now.Alive())), maps.Keys(w.Held(w.Now))) {
		if w.gone[token] {
			w.Wrong("%s is back after it has given up", token)
		}
	}
}

// settle ends a run: everybody crashes, and when all leases are over nothing is left but what the lock remembers.
func (w *Queued) settle() {
	for range 3 {
		w.Mono += w.Now.Number("longest") + queue.LongestGrace.Milliseconds() + 1
		w.Run(w.Inspecting(), "")
	}
	for _, set := range w.Now.Sets {
		if len(set) > 0 {
			w.Wrong("%v is left at the end", set)
		}
	}
	for field := range w.Now.Hash {
		if !slices.Contains([]string{"fence", "longest", "ticket", "asked", "revoked", "revoker", "gone", "solo", "kept", "grace"}, field) {
			w.Wrong("%s is left at the end", field)
		}
	}
}
