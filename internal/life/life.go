// Package life is what something that can be closed has under way, and how that ends.
package life

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

// Life counts calls, and the operations that may outlast them. Use New.
type Life struct {
	// Tasks has every call that has begun, and what calls add while they are under way.
	Tasks sync.WaitGroup

	ending chan struct{}

	mu     sync.Mutex
	closed bool // nothing begins any more
}

// New returns a Life that is not closed.
func New() *Life { return &Life{ending: make(chan struct{})} }

// Begin begins a call, and reports whether that may be done. Each true is followed by one Tasks.Done.
func (l *Life) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.Tasks.Add(1)
	return true
}

// Pause waits for a random time before another attempt, so that those who collided do not do it again; after more
// attempts, for longer. It reports whether there may be one: not when ctx ends or Close is called meanwhile.
func (l *Life) Pause(ctx context.Context, attempts int) bool {
	timer := time.NewTimer(rand.N(min(firstPause<<min(attempts, 10), longestPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-l.ending:
	}
	return false
}

// Close lets nothing begin any more, and returns when all calls and tasks have ended. It may be called more than once.
func (l *Life) Close() {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if first {
		close(l.ending)
	}
	l.Tasks.Wait()
}
