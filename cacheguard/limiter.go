package cacheguard

import "context"

// Limiter gives loads permits, see Config.Limiter. It must be safe for concurrent use, and must not panic. The Guard
// does not close it. What it returns gives the permit back, and is called once; nil: there was none.
type Limiter interface {
	// Take waits for a permit, while ctx lasts and there can be one. Callers is how many calls wait for the load.
	Take(ctx context.Context, callers func() int) (free func(), err error)

	// Try is Take for refreshes and Warm: it does not wait for others' loads, and has no permit once ctx has ended.
	Try(ctx context.Context) (free func(), err error)
}
