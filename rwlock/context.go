package rwlock

import (
	"context"

	"github.com/cacheguard/go/internal/fence"
)

// FenceFrom returns the fence of the lease whose context this is: one that Do or RDo gave to its function, that of a Lease, that of the
// write of a Guard's Update, also with another WriteLock, or one made from these. Of several it is the innermost.
func FenceFrom(ctx context.Context) (number int64, ok bool) { return fence.From(ctx) }
