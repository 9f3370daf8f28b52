package locker

import "context"

// Fenced is what has a fence, such as a lease that may change its own.
type Fenced interface{ Fence() int64 }

type fenceKey struct{}

// WithFence returns the context of the work that is done under a lock with the fence.
func WithFence(ctx context.Context, f Fenced) context.Context {
	return context.WithValue(ctx, fenceKey{}, f)
}

// FenceFrom returns the fence that was given to the context last.
func FenceFrom(ctx context.Context) (fence int64, ok bool) {
	f, ok := ctx.Value(fenceKey{}).(Fenced)
	if !ok {
		return 0, false
	}
	return f.Fence(), true
}
