package cacheguard

import "context"

// Limiter is what loads take permits of, see Config.Limiter. It must be safe for concurrent use, and must not panic.
// What it returns gives the permit back, and is called once; nil: there was none. The Logger has its errors.
type Limiter interface {
	// Take waits for a permit. It has none if ctx has ended, or there will be none. Callers is how many calls wait for
	// the load at the moment.
	Take(ctx context.Context, callers func() int) (free func(), err error)

	// Try is Take without the wait for others' loads. It may take a moment, but none once ctx has ended. Loads that
	// nobody waits for use it: refreshes, and Warm.
	Try(ctx context.Context) (free func(), err error)
}
