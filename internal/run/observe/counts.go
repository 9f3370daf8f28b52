package observe

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
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

// Tally is what is counted of a Cache. The zero Tally is ready.
type Tally struct {
	Answers                                              Counts
	Loads, Failed, Nanos                                 atomic.Uint64 // of loaders: runs, failed runs, and how long they took together
	Takeovers, LeasesLost, Damaged, Unstorable, Outdated atomic.Uint64
}

// Tallied is a Tally at a time.
type Tallied struct {
	Name                                                 string // of the Cache; empty: what belongs to none
	Answers                                              [Words]uint64
	Loads, Failed, Nanos                                 uint64
	Takeovers, LeasesLost, Damaged, Unstorable, Outdated uint64
	Failing                                              Failing
}

// Failing is how many of a Cache's loads fail.
type Failing struct {
	For           time.Duration // for how long many do; 0: they do not
	Loads, Failed uint64        // of the last seconds
	Last          string        // what the last error said
}

// Read reads the Tally.
func (t *Tally) Read(name string) Tallied {
	return Tallied{
		Name: name, Answers: t.Answers.Sum(), Loads: t.Loads.Load(), Failed: t.Failed.Load(), Nanos: t.Nanos.Load(),
		Takeovers: t.Takeovers.Load(), LeasesLost: t.LeasesLost.Load(), Damaged: t.Damaged.Load(), Unstorable: t.Unstorable.Load(), Outdated: t.Outdated.Load(),
	}
}
