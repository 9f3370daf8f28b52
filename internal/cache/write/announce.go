package write

import (
	"context"
	"fmt"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// stand is a change on one target, as its keeper sees it.
type stand struct {
	request
	change  *Change
	placed  bool           // Redis has said that it stands; guarded by the change's mutex, as what follows
	renewal *lease.Renewal // nil: it is not renewed
}

func (s *stand) Due() script.Call    { return s.renew(&s.request) }
func (s *stand) Kept(time.Time, int) {}

// Lost lets a shared one stand again: it was evicted, or this process has been paused.
func (s *stand) Lost(int) {
	c := s.change
	if !c.shared {
		return
	}
	c.of.Life.Try(func() { // stop: RedisTimeout
		c.mu.Lock()
		s.placed, s.renewal = false, nil
		c.mu.Unlock()
		if c.ended() == nil {
			_ = c.stand(context.Background(), []request{s.request}, true) // if it fails, the next renewal tries again
		}
	})
}

// Announce lets a shared change stand on what is named, in the place of each.
func (c *Change) Announce(ctx context.Context, places ...Names) error {
	w := c.of
	if !w.Life.Begin() {
		return w.Closed
	}
	defer w.Life.Done()
	for _, names := range places {
		w.Owner.Named(ctx, names.Keys, names.Tags)
	}
	added, err := c.add(places)
	if err != nil || len(added) == 0 {
		return err
	}
	placed := make(chan error, 1)
	w.Life.Go(func() { // owner: the Guard; stop: RedisTimeout for each batch; joined by Close
		err := c.stand(ctx, added, w.Anyway)
		if w.Anyway {
			err = nil // it was reported, and is tried again until Done
		}
		placed <- errs.Join(err, c.ended())
	})
	select {
	case err := <-placed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: intend: %w", lifecycle.Ended(ctx))
	}
}

// stand lets the change stand, and has it renewed where it does, or in any case.
func (c *Change) stand(ctx context.Context, all []request, anyway bool) error {
	c.of.ask(ctx, "intend", all, sort.announce)
	c.keep(all, anyway)
	return failed(all)
}

// keep has the change renewed where it stands, or in any case, unless it has ended.
func (c *Change) keep(all []request, anyway bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.called {
		return
	}
	for i := range all {
		s := c.standLocked(all[i].place, all[i].target)
		s.placed = s.placed || all[i].err == nil
		if s.renewal != nil || !s.placed && !anyway {
			continue
		}
		s.renewal = &lease.Renewal{Lease: s, TTL: c.of.Keys.IntentTTL()} // as often in each place
		c.of.Keeper.Keep(s.renewal)
	}
}

// limit calls expire when Timeout is over.
func (c *Change) limit(expire func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of.Timeout >= 0 {
		c.timer = time.AfterFunc(c.of.Timeout, expire) // owner: the Guard; stop: the end of the change; it waits for nothing
	}
}
