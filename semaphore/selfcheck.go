package semaphore

import (
	"context"

	"github.com/cacheguard/go/internal/redis/acl"
)

// SelfCheck checks whether the Locker can do its work. Call it when a service starts. It checks that Redis can be reached,
// that its user may run each command (docs/redis.md lists them) on keys and channels that begin with the Prefix, that a
// permit can be taken and released, and that Redis evicts no keys (maxmemory-policy noeviction, if the user may run INFO).
// It takes at most until ctx ends, or 10 seconds. The error names what was refused.
func (k *Locker) SelfCheck(ctx context.Context) error {
	return k.core().SelfCheck(ctx, acl.Semaphore, func(ctx context.Context, name string) error {
		return k.Do(ctx, name, func(context.Context, *Lease) error { return nil })
	})
}
