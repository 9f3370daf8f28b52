package segment

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/cacheguard/go/internal/redis/acl"
)

// SelfCheck checks whether the Counter can do its work. Call it when a service starts. It checks that Redis can be reached,
// that its user may run each command (docs/redis.md lists them) on keys that begin with the Prefix, that units can be
// created, taken and added, and that Redis evicts no keys (maxmemory-policy noeviction, if the user may run INFO). It takes
// at most until ctx ends, or 10 seconds if ctx has no deadline. The counter that it makes expires. The error names what was
// refused.
func (c *Counter) SelfCheck(ctx context.Context) error {
	name := acl.Name()
	if err := c.begin(ctx, "check", name, 0, 0); err != nil {
		return err
	}
	defer c.life.Done()
	return acl.Segment.SelfCheck(ctx, c.life, c.rdb, c.cfg.Prefix, func(ctx context.Context) error { return c.tryOut(ctx, name) })
}

// tryOut makes a counter that expires soon, takes from it, which may move units between segments, adds to it, and counts.
func (c *Counter) tryOut(ctx context.Context, name string) error {
	if _, err := c.ask(ctx, creating(c.key(name, 0), rand.Text(), 2, acl.Patience)); err != nil {
		return failed("create", name, err)
	}
	if err := c.Take(ctx, name, 1); err != nil {
		return err
	}
	if err := c.Add(ctx, name, 1); err != nil {
		return err
	}
	total, err := c.Total(ctx, name)
	if err == nil && total != 2 {
		err = fmt.Errorf("there are %d units instead of 2", total)
	}
	return err
}
