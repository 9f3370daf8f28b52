package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/lock/locker"
)

// FenceFrom returns the fence of the lease that ctx belongs to. That is a context that Do or RDo gave to its function, that of a Lease,
// that of the write of a Guard's Update (with any WriteLock), or one derived from these. If there are several, the innermost counts.
func FenceFrom(ctx context.Context) (number int64, ok bool) { return locker.FenceFrom(ctx) }
