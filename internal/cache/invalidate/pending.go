package invalidate

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/report"
)

const (
	mostPending      = 100_000 // keys
	firstReplayPause = 100 * time.Millisecond
	maxReplayPause   = 2 * time.Second
)

// Pending are the invalidations that failed. They are sent again in the background until they succeed, and their keys are not
// read from Redis until then.
type Pending struct {
	AreAny  func(bool)      // notes whether there are any; nil: nobody wants to know
	journal *report.Journal // nil: it is not told
	count   atomic.Int64    // the number of keys, to check quickly whether there are any

	mu        sync.Mutex
	keys      map[string]pending
	last      uint64
	replaying bool

	moment   atomic.Uint64     // grows with each that is resolved
	resolved map[string]uint64 // the moments when keys were resolved, after lost
	lost     uint64            // up to this moment, any key may have been
}

// maxResolved bounds the keys in Pending.resolved.
const maxResolved = 1 << 13

type pending struct {
	since  uint64 // when it failed last, as a number that grows
	notice string // the same for all its replays: local tiers would miss a number that they never get
}

// Len is how many there are.
func (p *Pending) Len() int { return int(p.count.Load()) }

// Has reports whether an invalidation of the key is pending.
func (p *Pending) Has(key string) bool {
	if p.count.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, pending := p.keys[key]
	return pending
}

// Had reports whether an invalidation of the key was pending at any time since the moment.
func (p *Pending) Had(key string, since uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, pending := p.keys[key]
	return pending || since < p.lost || p.resolved[key] > since
}

// BeginningWith is how many of the keys begin so.
func (p *Pending) BeginningWith(prefix string) (n int) {
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
func (p *Pending) noticeOf(key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key].notice
}

// enqueue adds the keys, as long as there is room, and reports whether a replay must be started.
func (p *Pending) enqueue(keys []string, notice func(key string) string) (start bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = make(map[string]pending)
	}
	p.last++
	for _, key := range keys {
		k, again := p.keys[key]
		if !again && len(p.keys) >= mostPending {
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
		p.journal.PendingChanged(keys[0])
	}
	start = !p.replaying && len(p.keys) > 0
	p.replaying = p.replaying || start
	return start
}

// batch returns some of the keys, and the largest of their numbers. If there are none, the replay is over.
func (p *Pending) batch() (keys []string, upTo uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.keys {
		if keys = append(keys, key); len(keys) == most {
			break
		}
	}
	p.replaying = len(keys) > 0
	return keys, p.last
}

// resolve removes a key that was invalidated, unless it has failed again since.
func (p *Pending) resolve(key string, upTo uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k, pending := p.keys[key]; pending && k.since <= upTo {
		delete(p.keys, key)
		p.noteResolvedLocked(key)
	}
	p.countLocked()
	p.journal.PendingChanged("")
}

// noteResolvedLocked comes before the count says that nothing is pending.
func (p *Pending) noteResolvedLocked(key string) {
	if p.resolved == nil || len(p.resolved) >= maxResolved {
		p.resolved, p.lost = make(map[string]uint64), p.moment.Load()
	}
	p.resolved[key] = p.moment.Add(1)
}

func (p *Pending) countLocked() {
	p.count.Store(int64(len(p.keys)))
	if p.AreAny != nil {
		p.AreAny(len(p.keys) > 0)
	}
}

// Enqueue remembers keys whose invalidation failed. Only tasks may call it.
func (s *Sender) Enqueue(keys []string) {
	if s.Pending.enqueue(keys, s.Notice) {
		s.Life.Go(s.replay) // owner: the Guard; stop: the end of the Guard; joined by Close
	}
}

// replay sends what is pending until nothing is. When the Guard is closed, it tries once more.
func (s *Sender) replay() { s.Life.Until(firstReplayPause, maxReplayPause, s.replayed) }

// replayed sends what is pending, and reports whether nothing is left.
func (s *Sender) replayed() bool {
	for {
		keys, upTo := s.Pending.batch()
		if len(keys) == 0 {
			return true
		}
		failed := s.inParts(keys, func(part []string) map[string]error {
			return s.forgetPart(context.Background(), "invalidate", part, s.noticeOf, s.Call)
		})
		for _, key := range keys {
			if failed[key] == nil {
				s.Pending.resolve(key, upTo)
			}
		}
		if len(failed) > 0 {
			return false
		}
	}
}
