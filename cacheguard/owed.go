package cacheguard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/wake"
)

const (
	maxOwed          = 100_000 // keys
	firstReplayPause = 100 * time.Millisecond
	maxReplayPause   = 2 * time.Second
)

// errOwed is why a key is not read: an Invalidate of it has not reached Redis yet.
var errOwed = errors.New("an invalidation is still to be sent")

// owed are the keys whose invalidation failed. They are invalidated again and again in the background, and until that
// has succeeded this Guard does not trust what Redis has for them.
type owed struct {
	count atomic.Int64 // of keys, for those who only want to know whether there are any

	mu        sync.Mutex
	keys      map[string]debt
	last      uint64
	replaying bool
}

// debt is a key that is owed.
type debt struct {
	since  uint64 // when it was owed last, as a number that grows
	notice string // of its replays: a number for each of them would be missed by those who do not get it
}

// distrust is why the key is not to be read; nil if it is.
func (g *Guard) distrust(key string) *RedisError {
	if !g.owed.has(key) {
		return nil
	}
	return &RedisError{Op: "get", Key: key, Err: errOwed}
}

// has reports whether the key is owed.
func (o *owed) has(key string) bool {
	if o.count.Load() == 0 {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, found := o.keys[key]
	return found
}

// noticeOf is the notice of the key's replays.
func (o *owed) noticeOf(key string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keys[key].notice
}

// add adds the keys, as long as there is room, and reports whether a replay has to be started.
func (o *owed) add(keys []string, notice func(key string) string) (start bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		o.keys = make(map[string]debt)
	}
	o.last++
	for _, key := range keys {
		d, found := o.keys[key]
		if !found && len(o.keys) >= maxOwed {
			continue
		}
		if !found {
			d.notice = notice(key)
		}
		d.since = o.last
		o.keys[key] = d
	}
	o.count.Store(int64(len(o.keys)))
	start = !o.replaying && len(o.keys) > 0
	o.replaying = o.replaying || start
	return start
}

// some returns a batch of the keys and what their numbers are at most; none: the replay is over.
func (o *owed) some() (keys []string, upTo uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.keys {
		if keys = append(keys, key); len(keys) == maxInvalidations {
			break
		}
	}
	o.replaying = len(keys) > 0
	return keys, o.last
}

// settle takes a key off that was invalidated, unless it was owed again since.
func (o *owed) settle(key string, upTo uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys[key].since <= upTo {
		delete(o.keys, key)
	}
	o.count.Store(int64(len(o.keys)))
}

// owe remembers keys whose invalidation failed. It is called by tasks only.
func (g *Guard) owe(keys []string) {
	if g.owed.add(keys, g.notice) {
		g.tasks.Go(g.replay) // owner: the Guard; stop: g.ending; joined by Close
	}
}

// replay invalidates what is owed until nothing is. When the Guard is closed, it tries once more.
func (g *Guard) replay() {
	pause := firstReplayPause
	for ended := false; !ended; {
		select {
		case <-time.After(wake.Jittered(pause)):
		case <-g.ending:
			ended = true
		}
		for {
			keys, upTo := g.owed.some()
			if len(keys) == 0 {
				return
			}
			failed := g.forget(context.Background(), "invalidate", keys, g.owedInvalidation)
			for _, key := range keys {
				if failed[key] == nil {
					g.owed.settle(key, upTo)
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
