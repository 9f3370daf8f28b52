package gather

import "sync"

// Collector puts loads that begin at about the same time into the same Call. The zero Collector is ready.
type Collector[C interface{ Join(key string) bool }] struct {
	mu  sync.Mutex
	now C
	any bool // there is one
}

// Join makes the load a member of the Call that can be joined, or of a new one.
func (c *Collector[C]) Join(key string, newCall func() C) C {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.any || !c.now.Join(key) {
		c.now, c.any = newCall(), true
		c.now.Join(key)
	}
	return c.now
}
