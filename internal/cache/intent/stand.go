package intent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
)

// stand is an intent on one key, or on one epoch, as its keeper sees it.
type stand struct {
	intent  *Intent
	on      *standing
	id      string
	placed  bool           // Redis has said that it stands; guarded by the intent's mutex, as what follows
	renewal *lease.Renewal // nil: it is not renewed
}

func (s *stand) Due() script.Call    { return s.on.renew(s.id, s.intent.text) }
func (s *stand) Kept(time.Time, int) {}

// Lost lets it stand again: it was evicted, or this process has been paused.
func (s *stand) Lost(int) {
	s.intent.of.Life.Try(func() { // stop: RedisTimeout
		s.intent.mu.Lock()
		s.placed, s.renewal = false, nil
		s.intent.mu.Unlock()
		if s.intent.ended() == nil {
			_ = s.intent.place(context.Background(), []*stand{s}, true) // if it fails, the next renewal tries again
		}
	})
}

// place lets the intent stand, and has it renewed where it does, or in any case.
func (in *Intent) place(ctx context.Context, stands []*stand, anyway bool) error {
	failed := in.send(ctx, "intend", stands, func(on *standing, id, notice string) *script.Call {
		return on.intend(id, in.text, notice)
	})
	in.keep(stands, failed, anyway)
	return errs.Join(slices.Collect(maps.Values(failed))...)
}

// keep has those renewed that have not failed, or all of them, unless the intent has ended.
func (in *Intent) keep(stands []*stand, failed map[*stand]error, anyway bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over || in.called {
		return
	}
	for _, s := range stands {
		s.placed = s.placed || failed[s] == nil
		if s.renewal != nil || !s.placed && !anyway {
			continue
		}
		s.renewal = &lease.Renewal{Lease: s, TTL: in.of.Keys.IntentTTL()}
		in.of.Keeper.Keep(s.renewal)
	}
}

// invalidate ends the intent in Redis, and invalidates what it stands on. What fails is pending.
func (in *Intent) invalidate(ctx context.Context) error {
	if in.of.InProcess != nil {
		in.of.InProcess.Overtake()
		return nil
	}
	in.mu.Lock()
	var all []*stand
	for _, some := range in.stands {
		all = slices.AppendSeq(all, maps.Values(some))
	}
	in.mu.Unlock()
	failed := in.send(ctx, "invalidate", all, func(on *standing, id, notice string) *script.Call {
		return on.done(id, in.text, notice)
	})
	for s := range failed {
		s.on.Enqueue([]string{s.id})
	}
	return errs.Join(slices.Collect(maps.Values(failed))...)
}

// send makes a call for each of them, those on keys beside those on tags.
func (in *Intent) send(
	ctx context.Context, op string, stands []*stand, call func(on *standing, id, notice string) *script.Call,
) map[*stand]error {
	byWhat := make(map[*standing]map[string]*stand)
	for _, s := range stands {
		if byWhat[s.on] == nil {
			byWhat[s.on] = make(map[string]*stand)
		}
		byWhat[s.on][s.id] = s
	}
	var mu sync.Mutex
	failed := make(map[*stand]error)
	var all sync.WaitGroup
	for on, some := range byWhat {
		all.Go(func() { // joined below
			errs := on.Forget(ctx, op, slices.Collect(maps.Keys(some)), func(id, notice string) *script.Call { return call(on, id, notice) })
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
