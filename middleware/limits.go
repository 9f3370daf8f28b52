package middleware

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// limits count what this instance has stored, for Config.Limits.
type limits struct {
	Limits

	variants, pages census // of a page, of a path
	admitted        census // pages that were made once
}

const (
	limitPeriod = time.Hour
	maxCounted  = 1 << 16 // names, in each of two generations
)

// census counts the different members of groups, in a bounded memory. It forgets what was not seen for one to two periods, or sooner if
// there is too much.
type census struct {
	mu         sync.Mutex
	seed       maphash.Seed
	began      time.Time
	young, old generation
}

type generation struct {
	members map[uint64]struct{}
	counts  map[uint64]int // of members, by group
}

func newLimits(set Limits) *limits {
	seed := maphash.MakeSeed()
	return &limits{Limits: set, variants: census{seed: seed}, pages: census{seed: seed}, admitted: census{seed: seed}}
}

// count notes the member, and reports whether it was known, or is one of the first ones of its group. A member beyond them is not noted.
func (c *census) count(now time.Time, period time.Duration, group, member string, most int) (known, within bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.began) >= period || len(c.young.members) >= maxCounted {
		c.old, c.young, c.began = c.young, generation{members: make(map[uint64]struct{}), counts: make(map[uint64]int)}, now
	}
	g, m := maphash.String(c.seed, group), maphash.String(c.seed, group+"\n"+member)
	if _, known = c.young.members[m]; known {
		return true, true
	}
	_, known = c.old.members[m]
	if !known && max(c.young.counts[g], c.old.counts[g]) >= most {
		return false, false
	}
	c.young.members[m] = struct{}{}
	c.young.counts[g]++
	return known, true
}

// admits says why a response may not be stored, by Config.Limits; empty: it may.
func (b *build) admits() (unfit string) {
	l, set := b.lookup, b.lookup.x.cache.limits
	if l.x.warming {
		return "" // somebody has named it
	}
	now, page, variants := l.x.now(), l.x.location, set.Variants
	path, query := canonical.Split(l.x.r)
	if l.x.search != nil {
		query, variants = l.x.searched(), variants+1 // the first of a query may be a variant, too
		page += query
	}
	if l.variant.page != "" && set.Variants > 0 {
		if _, within := set.variants.count(now, limitPeriod, page, l.key, variants); !within {
			return writer.Limited
		}
	}
	if query != "" && set.Pages > 0 {
		if _, within := set.pages.count(now, limitPeriod, path, query, set.Pages); !within {
			return writer.Limited
		}
	}
	if set.Admit > 0 && (query != "" || !isFixed(route(b.asked))) {
		if known, _ := set.admitted.count(now, set.Admit, "", l.key, maxCounted+1); !known {
			return writer.First
		}
	}
	return ""
}

// isFixed reports whether a route has one path.
func isFixed(pattern string) bool {
	return pattern != "" && !strings.ContainsAny(pattern, "{*") && !strings.HasSuffix(pattern, "/")
}

// limited is why a response that may be stored is not; empty: it is.
func (b *build) limited(status int) string {
	switch previous := b.lookup.usable(); {
	case status >= http.StatusInternalServerError && previous != nil && previous.Servable(b.received):
		return "status" // the page must not be lost to a failure
	case previous == nil:
		return b.admits()
	}
	return ""
}
