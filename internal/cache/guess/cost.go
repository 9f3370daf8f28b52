package guess

import (
	"sync/atomic"
	"time"
)

const (
	oneLoad = 8           // by how much a load changes the average
	afterOf = time.Second // how long nothing is loaded beside Redis after such a load has failed
)

// Cost is what the loads of a kind take, on average, where recent ones count more.
type Cost struct {
	took   atomic.Int64 // 0: nothing is known
	failed atomic.Int64 // when a load beside Redis failed last
}

// Took notes a load. Updates lost in a race do not matter.
func (c *Cost) Took(took time.Duration) {
	was := time.Duration(c.took.Load())
	if was == 0 {
		was = took
	}
	c.took.Store(int64(max(was+(took-was)/oneLoad, 1)))
}

// Read notes what an entry says that its load took, as long as nothing else is known.
func (c *Cost) Read(took time.Duration) {
	if took > 0 && c.took.Load() == 0 {
		c.Took(took)
	}
}

// Average is 0 if nothing is known.
func (c *Cost) Average() time.Duration { return time.Duration(c.took.Load()) }

// Failed notes that a load beside Redis has failed.
func (c *Cost) Failed(now time.Time) { c.failed.Store(now.UnixNano()) }

// Worth reports whether to load rather than to wait for so long.
func (c *Cost) Worth(now time.Time, wait time.Duration) bool {
	return c.Average() < wait && now.UnixNano()-c.failed.Load() > int64(afterOf)
}
