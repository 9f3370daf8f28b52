package cacheguard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/report"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/wake"
)

const (
	maxPending       = 100_000 // keys
	firstReplayPause = 100 * time.Millisecond
	maxReplayPause   = 2 * time.Second
)

// errPending is why a key is not read: an Invalidate of it has not reached Redis yet.
var errPending = errors.New("an invalidation is still to be sent")

// pendingInvalidations have failed. The Guard sends them again in the background until they succeed, and does not
// read their keys from Redis until then.
type pendingInvalidations struct {
	count   atomic.Int64    // the number of keys, to check quickly whether there are any
	detours *detours        // which calls look at
	journal *report.Journal // nil: it is not told

	mu        sync.Mutex
	keys      map[string]pendingInvalidation
	last      uint64
	replaying bool

	moment   atomic.Uint64     // grows with each that is resolved
	resolved map[string]uint64 // the moments when keys were resolved, after lost
	lost     uint64            // up to this moment, any key may have been
}

// maxResolved bounds the keys in pendingInvalidations.resolved.
const maxResolved = 1 << 13

type pendingInvalidation struct {
	since  uint64 // when it failed last, as a number that grows
	notice string // the same for all its replays: local tiers would miss a number that they never get
}

// has reports whether an invalidation of the key is pending.
func (p *pendingInvalidations) has(key string) bool {
	if p.count.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, pending := p.keys[key]
	return pending
}

// had reports whether an invalidation of the key was pending at any time since the moment.
func (p *pendingInvalidations) had(key string, since uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, pending := p.keys[key]
	return pending || since < p.lost || p.resolved[key] > since
}

// beginningWith is how many of the keys begin so.
func (p *pendingInvalidations) beginningWith(prefix string) (n int) {
	if p.count.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.keys {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

// noticeOf is the notice of the key's replays.
func (p *pendingInvalidations) noticeOf(key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key].notice
}

// enqueue adds the keys, as long as there is room, and reports whether a replay must be started.
func (p *pendingInvalidations) enqueue(keys []string, notice func(key string) string) (start bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = make(map[string]pendingInvalidation)
	}
	p.last++
	for _, key := range keys {
		k, again := p.keys[key]
		if !again && len(p.keys) >= maxPending {
			continue
		}
		if !again {
			k.notice = notice(key)
		}
		k.since = p.last
		p.keys[key] = k
	}
	p.countLocked()
	if len(keys) > 0 {
		p.journal.Owes(keys[0])
	}
	start = !p.replaying && len(p.keys) > 0
	p.replaying = p.replaying || start
	return start
}

// batch returns some of the keys, and the largest of their numbers. If there are none, the replay is over.
func (p *pendingInvalidations) batch() (keys []string, upTo uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.keys {
		if keys = append(keys, key); len(keys) == maxInvalidations {
			break
		}
	}
	p.replaying = len(keys) > 0
	return keys, p.last
}

// resolve removes a key that was invalidated, unless it has failed again since.
func (p *pendingInvalidations) resolve(key string, upTo uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k, pending := p.keys[key]; pending && k.since <= upTo {
		delete(p.keys, key)
		p.noteResolvedLocked(key)
	}
	p.countLocked()
	p.journal.Owes("")
}

// noteResolvedLocked comes before the count says that nothing is pending.
func (p *pendingInvalidations) noteResolvedLocked(key string) {
	if p.resolved == nil || len(p.resolved) >= maxResolved {
		p.resolved, p.lost = make(map[string]uint64), p.moment.Load()
	}
	p.resolved[key] = p.moment.Add(1)
}

func (p *pendingInvalidations) countLocked() {
	p.count.Store(int64(len(p.keys)))
	p.detours.put(owedKeys, len(p.keys) > 0)
}

// enqueue remembers keys whose invalidation failed. Only tasks may call it.
func (i *invalidations) enqueue(keys []string) {
	if i.pending.enqueue(keys, i.message) {
		i.guard.life.Go(i.replay) // owner: the Guard; stop: the end of the Guard; joined by Close
	}
}

// replay sends what is pending until nothing is. When the Guard is closed, it tries once more.
func (i *invalidations) replay() {
	pause := firstReplayPause
	for closed := false; !closed; {
		select {
		case <-time.After(wake.Jittered(pause)):
		case <-i.guard.life.Ending.Done():
			closed = true
		}
		for {
			keys, upTo := i.pending.batch()
			if len(keys) == 0 {
				return
			}
			failed := i.sendAgain(keys)
			for _, key := range keys {
				if failed[key] == nil {
					i.pending.resolve(key, upTo)
				}
			}
			if len(failed) > 0 {
				break
			}
			pause = firstReplayPause
		}
		pause = min(2*pause, maxReplayPause)
	}
}

// sendAgain sends invalidations that failed.
func (i *invalidations) sendAgain(keys []string) map[string]*RedisError {
	return i.forget(context.Background(), "invalidate", keys, i.replayCall)
}

// replayCall is the call that removes a key at last.
func (i *invalidations) replayCall(key string) *script.Call {
	return i.call(key, i.pending.noticeOf(key))
}
