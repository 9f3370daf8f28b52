package segment

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	maxRounds = 32
	undoFor   = time.Minute
)

// Take takes n units, from 1 to 2^44, all or none. It returns ErrShort if fewer are left, and ErrNotFound if there is no such name.
// With any error, the caller has nothing: if Redis took the units, or does so later, they are given back in the background. Nearly
// every call is one round trip; one that finds a segment short takes a few.
func (c *Counter) Take(ctx context.Context, name string, n int64) error {
	_, err := c.take(ctx, name, n, n)
	return err
}

// TakeUpTo takes n units, from 1 to 2^44, or as many as are left, and returns how many: at least one, or ErrShort. Otherwise it is like
// Take.
func (c *Counter) TakeUpTo(ctx context.Context, name string, n int64) (int64, error) {
	return c.take(ctx, name, n, 1)
}

// take takes n units, or fewer if that is enough and there are no more.
func (c *Counter) take(ctx context.Context, name string, n, enough int64) (int64, error) {
	if err := c.begin(ctx, "take", name, n, 1); err != nil {
		return 0, err
	}
	defer c.life.Done()
	got, err := c.takeFrom(ctx, name, rand.IntN(c.cfg.Segments), n, n)
	if err == nil && got == 0 {
		got, err = c.takeFromAll(ctx, name, n, enough)
	}
	if err != nil {
		return 0, failed("take", name, err)
	}
	return got, nil
}

// takeFromAll takes when the segment that was asked first is short.
func (c *Counter) takeFromAll(ctx context.Context, name string, n, enough int64) (int64, error) {
	var before *snapshot // of too few
	for round := range maxRounds {
		now, err := c.snapshot(ctx, name)
		switch {
		case err != nil:
			return 0, err
		case !now.found:
			return 0, ErrNotFound
		case before.still(now):
			return 0, ErrShort
		case len(now.moves) > 0:
			before, err = nil, c.complete(ctx, name, now.until, now.moves)
		case now.total() < enough:
			before = now
		default:
			var got int64
			if got, err = c.gather(ctx, name, now, n, enough); got > 0 {
				return got, err
			}
			before = nil
			if err == nil && !c.life.Pause(ctx, round) {
				err = cmp.Or(lifecycle.Ended(ctx), ErrClosed)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, ErrBusy
}

// gather brings the units into one segment, the richest, and takes them from there. Others may have been faster.
func (c *Counter) gather(ctx context.Context, name string, s *snapshot, n, enough int64) (int64, error) {
	to := s.richest()
	if missing := min(n, s.total()) - s.left[to]; missing > 0 {
		if err := c.carryOut(ctx, name, s.until, s.gathering(to, missing)); err != nil {
			return 0, err
		}
	}
	return c.takeFrom(ctx, name, to, n, enough)
}

// takeFrom takes from one segment. It returns 0 when there are not enough, or there is no such segment.
func (c *Counter) takeFrom(ctx context.Context, name string, segment int, n, enough int64) (int64, error) {
	l := c.lanes.borrow()
	t := taking{key: c.key(name, segment), lane: l.id, number: l.number}
	got, err := c.ask(ctx, t.take(n, enough))
	if err == nil && got == replyStale {
		err = errStale
	}
	if err != nil {
		c.undo(t, l)
		return 0, err
	}
	c.lanes.giveBack(l)
	return max(got, 0), nil
}

// undo gives back, in the background, what may have been taken.
func (c *Counter) undo(t taking, l *lane) {
	until := time.Now().Add(undoFor)
	c.life.Go(func() { // owner: the Counter; stop: it is done, undoFor or Close; joined by Close
		for round, last := 0, false; ; round++ {
			_, err := c.redis.Ask(context.Background(), t.undo(), nil)
			if err == nil {
				c.lanes.giveBack(l)
			}
			if err == nil || last || time.Now().After(until) {
				return // a lane with something to undo is not used again
			}
			last = !c.life.Pause(context.Background(), round) // once more
		}
	})
}
