package middleware

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// limits count what this instance is asked for, for Config.Limits.
type limits struct {
	Limits

	variants, pages census // of a page, of a path
	asked           census // records, for Admit
}

func newLimits(set Limits) *limits {
	return &limits{Limits: set, variants: newCensus(limitPeriod), pages: newCensus(limitPeriod), asked: newCensus(set.Admit)}
}

const (
	limitPeriod = time.Hour
	maxCounted  = 1 << 16 // members that were used, in each of two generations
)

// census counts the uses of the members of groups, in a bounded memory, and admits some to each group: the first ones, and later members that
// are used at least twice as often as the least used of these, whose place they take. It forgets what was not used for one to two periods,
// or sooner if there is too much.
type census struct {
	period time.Duration
	seed   maphash.Seed

	mu         sync.Mutex
	began      time.Time
	young, old map[uint64]int      // uses of members
	groups     map[uint64][]uint64 // the members that were admitted
}

func newCensus(period time.Duration) census { return census{period: period, seed: maphash.MakeSeed()} }

func (c *census) hash(group, member string) (g, m uint64) {
	g = maphash.String(c.seed, group)
	return g, g ^ bits.RotateLeft64(maphash.String(c.seed, member), 1)
}

// use notes that a member is used.
func (c *census) use(now time.Time, group, member string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.began) >= c.period || len(c.young) >= maxCounted {
		c.turn(now)
	}
	_, m := c.hash(group, member)
	c.young[m]++
}

// uses is how often a member was used.
func (c *census) uses(group, member string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, m := c.hash(group, member)
	return c.young[m] + c.old[m]
}

// turn begins a generation, and takes their places from the members that were not used in the last one.
func (c *census) turn(now time.Time) {
	if now.Sub(c.began) >= 2*c.period {
		c.young = nil
	}
	c.old, c.young, c.began = c.young, make(map[uint64]int), now
	groups := make(map[uint64][]uint64)
	for g, members := range c.groups {
		if members = slices.DeleteFunc(members, func(m uint64) bool { return c.old[m] == 0 }); len(members) > 0 {
			groups[g] = members
		}
	}
	c.groups = groups
}

// admits reports whether a member that has been used belongs to the group, which has so many members at most.
func (c *census) admits(group, member string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, m := c.hash(group, member)
	members := c.groups[g]
	uses := func(m uint64) int { return c.young[m] + c.old[m] }
	switch {
	case slices.Contains(members, m):
		return true
	case len(members) < most:
		c.groups[g] = append(members, m)
		return true
	}
	least := 0
	for i := range members {
		if uses(members[i]) < uses(members[least]) {
			least = i
		}
	}
	if uses(m) < 2*uses(members[least]) {
		return false
	}
	members[least] = m
	return true
}
