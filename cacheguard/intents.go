package cacheguard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/script"
)

// intents has the intents that this Guard has not ended.
type intents struct {
	onKeys, onTags standing
	detours        *detours

	mu     sync.Mutex
	closed bool
	all    map[*Intent]struct{}
}

// standing is how intents stand on keys, or on the epochs of tags: what is invalidated, and the calls.
type standing struct {
	*invalidations
	what   string // keys or tags
	intend func(id, intent, notice string) *script.Call
	renew  func(id, intent string) script.Call
	done   func(id, intent, notice string) *script.Call
}

func (i *intents) init(g *Guard) {
	i.detours = &g.detours
	i.onKeys = standing{
		invalidations: &g.invalidations,
		what:          "keys",
		intend: func(key, intent, notice string) *script.Call {
			return g.keys.Intend(g.keys.ValueKey(key), intent, notice)
		},
		renew: func(key, intent string) script.Call { return g.keys.RenewIntend(g.keys.ValueKey(key), intent) },
		done: func(key, intent, notice string) *script.Call {
			return g.keys.Done(g.keys.ValueKey(key), intent, notice)
		},
	}
	i.onTags = standing{
		invalidations: &g.ofEpochs.invalidations,
		what:          "tags",
		intend: func(id, intent, notice string) *script.Call {
			part, name := partAndName(id)
			return g.epochs.Intend(name, part, intent, g.keys.IntentTTL(), notice)
		},
		renew: func(id, intent string) script.Call {
			part, name := partAndName(id)
			return g.epochs.RenewIntend(name, part, intent, g.keys.IntentTTL())
		},
		done: func(id, intent, notice string) *script.Call {
			part, name := partAndName(id)
			return g.epochs.Done(name, part, intent, notice)
		},
	}
}

// add begins an intent, which UpdateTimeout bounds. It refuses after close.
func (i *intents) add(in *Intent) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	if i.all == nil {
		i.all = make(map[*Intent]struct{})
	}
	i.all[in] = struct{}{}
	i.detours.put(intending, true)
	if limit := in.guard.cfg.UpdateTimeout; limit != off {
		in.timer = time.AfterFunc(limit, in.expire) // owner: the Guard; stop: the end of the intent; it does not wait for anything
	}
	return true
}

func (i *intents) remove(in *Intent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, in)
	i.detours.put(intending, len(i.all) > 0)
}

// count is how many there are, and since when the oldest is.
func (i *intents) count() (n int, oldest time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for in := range i.all {
		if oldest.IsZero() || in.since.Before(oldest) {
			oldest = in.since
		}
	}
	return len(i.all), oldest
}

// close leaves the intents to expire.
func (i *intents) close() {
	i.mu.Lock()
	i.closed = true
	left := make([]*Intent, 0, len(i.all))
	for in := range i.all {
		left = append(left, in)
	}
	i.mu.Unlock()
	for _, in := range left {
		in.stop()
	}
}

// stand is an intent on one key, or on one epoch, as its keeper sees it.
type stand struct {
	intent  *Intent
	on      *standing
	id      string
	renewal *lease.Renewal // nil: it is not renewed; guarded by the intent's mutex
}

func (s *stand) Due() script.Call    { return s.on.renew(s.id, s.intent.text) }
func (s *stand) Kept(time.Time, int) {}

// Lost lets it stand again: it was evicted, or this process has been paused.
func (s *stand) Lost(int) {
	s.intent.guard.life.Try(func() { // stop: RedisTimeout
		if s.intent.ended() == nil {
			_ = s.intent.place(context.Background(), []*stand{s}, true) // if it fails, the next renewal tries again
		}
	})
}

// place lets the intent stand, and has it renewed where it does, or in any case.
func (in *Intent) place(ctx context.Context, stands []*stand, anyway bool) error {
	errs, kept := in.send(ctx, "intend", stands, func(on *standing) func(id string) *script.Call {
		return func(id string) *script.Call { return on.intend(id, in.text, on.message(id)) }
	}), stands
	if len(errs) > 0 && !anyway {
		kept = nil
		for _, s := range stands {
			if errs[s] == nil {
				kept = append(kept, s)
			}
		}
	}
	in.keep(kept)
	return joinStands(errs)
}

// keep has them renewed, unless the intent has ended.
func (in *Intent) keep(stands []*stand) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over || in.called {
		return
	}
	for _, s := range stands {
		s.renewal = &lease.Renewal{Lease: s, TTL: in.guard.keys.IntentTTL()}
		in.guard.keeper.Keep(s.renewal)
	}
}

// invalidate ends the intent in Redis, and invalidates what it stands on. Invalidations that fail are pending.
func (in *Intent) invalidate(ctx context.Context) error {
	g := in.guard
	if g.cfg.Disabled {
		g.process.Overtake()
		return nil
	}
	in.mu.Lock()
	var all []*stand
	for _, some := range in.stands {
		for _, s := range some {
			all = append(all, s)
		}
	}
	in.mu.Unlock()
	failed := in.send(ctx, "invalidate", all, func(on *standing) func(id string) *script.Call {
		return func(id string) *script.Call { return on.done(id, in.text, on.message(id)) }
	})
	for s := range failed {
		s.on.enqueue([]string{s.id})
	}
	return joinStands(failed)
}

// send makes a call for each of them, those on keys beside those on tags.
func (in *Intent) send(
	ctx context.Context, op string, stands []*stand, call func(on *standing) func(id string) *script.Call,
) map[*stand]*RedisError {
	byWhat := make(map[*standing]map[string]*stand)
	for _, s := range stands {
		if byWhat[s.on] == nil {
			byWhat[s.on] = make(map[string]*stand)
		}
		byWhat[s.on][s.id] = s
	}
	var mu sync.Mutex
	failed := make(map[*stand]*RedisError)
	var all sync.WaitGroup
	for on, some := range byWhat {
		all.Go(func() { // joined below
			ids := make([]string, 0, len(some))
			for id := range some {
				ids = append(ids, id)
			}
			errs := on.forget(ctx, op, ids, call(on))
			mu.Lock()
			defer mu.Unlock()
			for id, err := range errs {
				failed[some[id]] = err
			}
		})
	}
	all.Wait()
	return failed
}

func joinStands(failed map[*stand]*RedisError) error {
	errs := make([]error, 0, len(failed))
	for _, err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
