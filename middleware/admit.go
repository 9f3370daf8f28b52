package middleware

import (
	"net/http"
	"strings"

	"github.com/cacheguard/go/middleware/internal/canonical"
)

// counted is how a lookup counts: among the pages of its path, and among the variants of its page. No member: not at all.
func (l *lookup) counted() (path, query, page, variant string, most int) {
	path, query = canonical.Split(l.x.r)
	page, most = l.x.location, l.x.cache.limits.Variants
	if l.x.search != nil {
		query, most = l.x.searched(), most+1 // the first of a query may be a variant, too
		page += query
	}
	if l.variant.page != "" {
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
	case set.Admit > 0 && set.asked.uses("", l.key) < 2 && (query != "" || !isFixed(route(b.asked))):
		return first
	}
	return ""
}

// isFixed reports whether a route has one path.
func isFixed(pattern string) bool {
	return pattern != "" && !strings.ContainsAny(pattern, "{*") && !strings.HasSuffix(pattern, "/")
}

// limited is why a response that may be stored is not. Unfit: it is for its client alone; refused: it answers all who wait.
func (b *build) limited(status int) (unfit, refused string) {
	switch previous := b.lookup.usable(); {
	case status >= http.StatusInternalServerError && previous != nil && previous.Servable(b.received):
		return "status", "" // the page must not be lost to a failure
	case previous == nil:
		return "", b.admits()
	}
	return "", ""
}
