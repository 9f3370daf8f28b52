// Package calls is what something that can be closed has under way, and how that ends.
package calls

import "sync"

// Calls counts calls, and the operations that may outlast them. Use New.
type Calls struct {
	// Tasks has every call that has begun, and what calls add while they are under way.
	Tasks sync.WaitGroup

	ending chan struct{}

	mu     sync.Mutex
	closed bool // nothing begins any more
}

// New returns Calls that are not closed.
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

// Ending is closed by Close: who waits for time to pass stops.
func (c *Calls) Ending() <-chan struct{} { return c.ending }

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
