package segment

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
)

// Create makes a name with that many units, from 0 to 2^44, and spreads them over the segments. It returns ErrExists if there
// is one, and ErrUncertain if it is not known whether it was made. A name cannot be removed, only expire, because Takes under
// way could otherwise affect a new counter of the same name. So name it after a sale, not after a product.
func (c *Counter) Create(ctx context.Context, name string, total int64) error {
	if err := c.begin(ctx, "create", name, total, 0); err != nil {
		return err
	}
	defer c.life.Done()
	key, token := c.key(name, 0), rand.Text()
	made, err := c.ask(ctx, creating(key, token, total, c.cfg.TTL))
	switch {
	case err != nil:
		return failed("create", name, uncertain(err))
	case made == 0:
		return failed("create", name, ErrExists)
	}
	_ = c.level(ctx, name) // what is not spread can be taken all the same
	return nil
}

// Add adds n units, from 1 to 2^44: a new delivery, or returned units. It returns ErrNotFound if there is no such name,
// and ErrUncertain if it is not known whether they were added.
func (c *Counter) Add(ctx context.Context, name string, n int64) error {
	if err := c.begin(ctx, "add", name, n, 1); err != nil {
		return err
	}
	defer c.life.Done()
	id := rand.Text()
	reply, err := c.addTo(ctx, name, mathrand.IntN(c.cfg.Segments), id, n)
	if err == nil && reply == replyAbsent {
		reply, err = c.addTo(ctx, name, 0, id, n)
	}
	switch {
	case err != nil:
		return failed("add", name, uncertain(err))
	case reply == replyAbsent:
		return failed("add", name, ErrNotFound)
	case reply == replyTooMany:
		return failed("add", name, errors.New("a segment would have more than 2^44"))
	}
	return nil
}

func (c *Counter) addTo(ctx context.Context, name string, segment int, id string, n int64) (int64, error) {
	return c.ask(ctx, adding(c.key(name, segment), id, n))
}

// Total returns how many units are left. The number is exact if none is taken while it counts. It costs a few round trips, to
// all segments.
func (c *Counter) Total(ctx context.Context, name string) (int64, error) {
	if err := c.begin(ctx, "count", name, 0, 0); err != nil {
		return 0, err
	}
	defer c.life.Done()
	var before *snapshot
	for range maxRounds {
		now, err := c.snapshot(ctx, name)
		switch {
		case err != nil:
		case !now.found:
			err = ErrNotFound
		case before.still(now):
			return now.total(), nil
		case len(now.moves) > 0:
			err = c.complete(ctx, name, now.until, now.moves)
		}
		if err != nil {
			return 0, failed("count", name, err)
		}
		before = now
	}
	return 0, failed("count", name, ErrBusy)
}

// Rebalance spreads the units evenly, and completes moves that others have left unfinished. Takes go on while it runs. They
// find all units without it, but with it in one round trip.
func (c *Counter) Rebalance(ctx context.Context, name string) error {
	if err := c.begin(ctx, "rebalance", name, 0, 0); err != nil {
		return err
	}
	defer c.life.Done()
	if err := c.level(ctx, name); err != nil {
		return failed("rebalance", name, err)
	}
	return nil
}

// level looks, completes what is on its way, looks again if there was something, and makes all segments equal.
func (c *Counter) level(ctx context.Context, name string) error {
	s, err := c.snapshot(ctx, name)
	if err == nil && s.found && len(s.moves) > 0 {
		if err = c.complete(ctx, name, s.until, s.moves); err == nil {
			s, err = c.snapshot(ctx, name)
		}
	}
	switch {
	case err != nil:
		return err
	case !s.found:
		return ErrNotFound
	}
	return c.carryOut(ctx, name, s.until, s.levelling())
}
