package middleware

import (
	"slices"

	"github.com/cacheguard/go/internal/run/observe"
)

// results are the words that requests are counted under.
var results = []string{
	string(Hit), string(Stale), string(Loaded), string(Shared), string(Bypassed), string(Passed), string(Failed), string(Refused),
}

func init() { observe.Register((*Cache).observed) }

// observed is for package admin.
func (c *Cache) observed() observe.Pages {
	if c == nil {
		return observe.Pages{}
	}
	counts := new(observe.Counts)
	if !c.seen.CompareAndSwap(nil, counts) {
		counts = c.seen.Load()
	}
	return observe.Pages{Name: c.cfg.Name, Space: c.cfg.Space, Words: results, Counts: counts}
}

// count counts how a request was answered, if package admin looks.
func (c *Cache) count(r Result) {
	if counts := c.seen.Load(); counts != nil {
		counts.Add(slices.Index(results, string(r)))
	}
}
