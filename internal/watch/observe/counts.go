package observe

import (
	"math/rand/v2"
	"sync/atomic"
)

const (
	// Words is how many things Counts can tell apart.
	Words = 16

	stripes = 8
)

// Counts counts what happens on all processors at once, so each has a few places to count in, a cache line or two each.
// The zero Counts is ready.
type Counts struct {
	stripes [stripes][Words]atomic.Uint64
}

// Add counts one of the things.
func (c *Counts) Add(word int) { c.stripes[rand.Uint32()%stripes][word].Add(1) }

// Sum is how often each was counted.
func (c *Counts) Sum() (all [Words]uint64) {
	for i := range c.stripes {
		for word := range all {
			all[word] += c.stripes[i][word].Load()
		}
	}
	return all
}
