package mutex

import (
	"context"
	"fmt"

	"github.com/cacheguard/go/internal/rights"
)

// SelfCheck finds out whether the Locker can do its work, for use when a service starts: that Redis can be reached, that its
// user may run each command (docs/redis.md lists them) on keys and channels that begin with the Prefix, that a lock can be
// taken and given back, and that Redis evicts no keys (maxmemory-policy noeviction, where the user may ask with INFO). It
// waits until ctx ends, or for 10 seconds. The error names what was refused.
func (k *Locker) SelfCheck(ctx context.Context) error {
	name := rights.Name()
	if err := k.begin(name); err != nil {
		return err
	}
	defer k.life.Done()
	ctx, cancel := context.WithTimeout(ctx, rights.Patience)
	defer cancel()
	tasks := k.life
	err := rights.First(
		func() error { return rights.Mutex.Check(ctx, tasks, k.rdb, k.cfg.Prefix) },
		func() error { return rights.CheckChannel(ctx, tasks, k.rdb, k.inbox.Channel()) },
		func() error { return k.Do(ctx, name, func(context.Context, *Lease) error { return nil }) },
		func() error { return rights.CheckEviction(ctx, tasks, k.rdb) },
	)
	if err != nil {
		return fmt.Errorf("mutex: self-check: %w", err)
	}
	return nil
}
