package rwlock

import "context"

type leaseKey struct{}

// FenceFrom returns the fence of the lease whose context this is: one that Do or RDo gave to its function, that of a Lease,
// or one made from these. Of several it is the innermost.
func FenceFrom(ctx context.Context) (fence int64, ok bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	if !ok {
		return 0, false
	}
	return l.Fence(), true
}
