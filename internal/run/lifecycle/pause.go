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
	return l.Sleep(ctx, rand.N(min(firstPause<<min(attempts, 10), longestPause)))
}

// Sleep waits for d, and reports whether it did: not when ctx ends or Close is called meanwhile.
func (l *Life) Sleep(ctx context.Context, d time.Duration) bool {
	return sleep(d, ctx.Done(), l.Ending.Done())
}

// Until calls attempt until it reports that nothing is left to be done: after a pause of about the first, twice as long
// each time, up to the longest. When Close is called, it is called once more, at once.
func (l *Life) Until(first, longest time.Duration, attempt func() (done bool)) {
	for pause, last := first, false; !last; pause = min(2*pause, longest) {
		last = !l.Sleep(context.Background(), pause/2+rand.N(pause))
		last = attempt() || last
	}
}

// Sleep waits for d, and reports whether it did: not when ctx ends meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool { return sleep(d, ctx.Done(), nil) }

func sleep(d time.Duration, left, ended <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-left:
	case <-ended:
	}
	return false
}
