package semaphore

import (
	"context"

	"github.com/cacheguard/go/internal/rights"
)

// SelfCheck finds out whether the Locker can do its work, for use when a service starts: that Redis can be reached, that its
// user may run each command (docs/redis.md lists them) on keys and channels that begin with the Prefix, that a permit can be
// taken and given back, and that Redis evicts no keys (maxmemory-policy noeviction, where the user may ask with INFO). It
// waits until ctx ends, or for 10 seconds. The error names what was refused.
func (k *Locker) SelfCheck(ctx context.Context) error {
	name := rights.Name()
	if err := k.begin(name); err != nil {
		return err
	}
	defer k.life.Done()
	return rights.Semaphore.SelfCheck(ctx, k.life, k.rdb, k.cfg.Prefix,
		func(ctx context.Context) error { return rights.CheckChannel(ctx, k.life, k.rdb, k.inbox.Channel()) },
		func(ctx context.Context) error {
			return k.Do(ctx, name, func(context.Context, *Lease) error { return nil })
		},
	)
}
