// Package fence carries the fence of a lock in the context of the work that is done under it.
package fence

import "context"

// Holder is what has a fence: a lease that may change its own, or a Number.
type Holder interface{ Fence() int64 }

// Number is the fence of a lease that keeps it.
type Number int64

// Fence is the number.
func (n Number) Fence() int64 { return int64(n) }

type key struct{}

// With returns a context with the fence.
func With(ctx context.Context, h Holder) context.Context { return context.WithValue(ctx, key{}, h) }

// From returns the fence that was given to the context last.
func From(ctx context.Context) (fence int64, ok bool) {
	h, ok := ctx.Value(key{}).(Holder)
	if !ok {
		return 0, false
	}
	return h.Fence(), true
}
