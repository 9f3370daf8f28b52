package middleware

import (
	"hash/maphash"
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/middleware/internal/canonical"
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
	return c.usesLocked(m)
}

func (c *census) usesLocked(m uint64) int { return c.young[m] + c.old[m] }

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
	switch {
	case slices.Contains(members, m):
		return true
	case len(members) < most:
		c.groups[g] = append(members, m)
		return true
	}
	least := slices.MinFunc(members, func(a, b uint64) int { return c.usesLocked(a) - c.usesLocked(b) })
	if c.usesLocked(m) < 2*c.usesLocked(least) {
		return false
	}
	members[slices.Index(members, least)] = m
	return true
}

// counted is how a lookup counts: among the pages of its path, and among the variants of its page. No member: not at all.
func (l *lookup) counted() (path, query, page, variant string, most int) {
	path, query = canonical.Split(l.x.r)
	page, most = l.x.location, l.x.cache.limits.Variants
	if l.x.search != nil {
		query, most = l.x.searched(), most+1 // the first of a query may be a variant, too
		page += query
	}
	if l.variant.of != nil {
		variant = l.key
	}
	return path, query, page, variant, most
}

// use counts the lookup as one use of what it looks for.
func (l *lookup) use() {
	set := l.x.cache.limits
	if set.Pages+set.Variants == 0 && set.Admit == 0 || l.x.warming {
		return
	}
	now := l.x.now()
	path, query, page, variant, _ := l.counted()
	if set.Variants > 0 && variant != "" {
		set.variants.use(now, page, variant)
	}
	if set.Pages > 0 && query != "" && variant == "" {
		set.pages.use(now, path, query)
	}
	if set.Admit > 0 {
		set.asked.use(now, "", l.key)
	}
}

// admits says why a response may not be stored, by Config.Limits; empty: it may.
func (b *build) admits() (refused string) {
	l, set := b.lookup, b.lookup.x.cache.limits
	if l.x.warming {
		return "" // somebody has named it
	}
	path, query, page, variant, most := l.counted()
	switch {
	case set.Variants > 0 && variant != "" && !set.variants.admits(page, variant, most),
		set.Pages > 0 && query != "" && !set.pages.admits(path, query, set.Pages):
		return limited
	case set.Admit > 0 && set.asked.uses("", l.key) < 2 && (query != "" || !isFixed(b.asked)):
		return first
	}
	return ""
}

// isFixed reports whether the request's route has one path.
func isFixed(r *http.Request) bool {
	pattern := route(r)
	if chi.RouteContext(r.Context()) == nil { // to http.ServeMux, a slash at the end is all that is below it
		exact, ends := strings.CutSuffix(pattern, "{$}")
		if !ends && strings.HasSuffix(pattern, "/") {
			return false
		}
		pattern = exact
	}
	return pattern != "" && !strings.ContainsAny(pattern, "{*")
}

// limited is why a response that may be stored is not. Unfit: it is for its client alone; refused: it answers all who wait.
func (b *build) limited(status int) (unfit, refused string) {
	switch previous := b.lookup.usable(); {
	case status >= http.StatusInternalServerError && previous != nil && previous.Servable(b.received):
		return "status", "" // the page must not be lost to a failure
	case previous == nil && !b.lookup.past.Is(): // else nothing is stored anyway
		return "", b.admits()
	}
	return "", ""
}
