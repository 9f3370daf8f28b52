package health

import "github.com/cacheguard/go/internal/perclient"

// opened has the breakers that are shared, by client; see package perclient.
var opened perclient.Shared[*Health]

// Open returns the breakers that the locks, counters and values of a process on the client share: what one of them finds out spares the others
// the wait. The caller calls release when it asks no more.
func Open(rdb any) (h *Health, release func()) {
	return opened.Open(rdb, func() *Health { return New(rdb, nil) }, func(*Health) {})
}
