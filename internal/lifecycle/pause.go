package lifecycle

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause   = time.Millisecond // at most, and twice as much each time
	longestPause = 64 * time.Millisecond
)

// Pause waits for a random time before another attempt, so that those who collided do not do it again; after more
// attempts, for longer. It reports whether there may be one: not when ctx ends or Close is called meanwhile.
func (l *Life) Pause(ctx context.Context, attempts int) bool {
	timer := time.NewTimer(rand.N(min(firstPause<<min(attempts, 10), longestPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-l.Ending.Done():
	}
	return false
}
