// Package calls is what something that can be closed has under way, and how that ends.
package calls

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	firstPause   = time.Millisecond // at most, and twice as much each time
	longestPause = 64 * time.Millisecond
)

// Calls counts calls, and the operations that may outlast them. Use New.
type Calls struct {
	// Tasks has every call that has begun, and what calls add while they are under way.
	Tasks sync.WaitGroup

	ending chan struct{}

	mu     sync.Mutex
	closed bool // nothing begins any more
}

// New returns a Calls that is not closed.
func New() *Calls { return &Calls{ending: make(chan struct{})} }

// Begin begins a call, and reports whether that may be done. Each true is followed by one Tasks.Done.
func (c *Calls) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.Tasks.Add(1)
	return true
}

// Pause waits for a random time before another attempt, so that those who collided do not do it again; after more
// attempts, for longer. It reports whether there may be one: not when ctx ends or Close is called meanwhile.
func (c *Calls) Pause(ctx context.Context, attempts int) bool {
	timer := time.NewTimer(rand.N(min(firstPause<<min(attempts, 10), longestPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.ending:
	}
	return false
}

// Close lets nothing begin any more, and returns when all calls and tasks have ended. It may be called more than once.
func (c *Calls) Close() {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		close(c.ending)
	}
	c.Tasks.Wait()
}
