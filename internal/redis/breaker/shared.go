package breaker

import (
	"time"

	"github.com/cacheguard/go/internal/redis/perclient"
	"github.com/cacheguard/go/internal/redis/script"
)

// opened has the breakers that are shared, by client; see package perclient.
var opened perclient.Shared[*Set]

// Open returns the breakers that the locks, counters and values of a process on the client share: what one of them
// finds out spares the others the wait. The probes wait for the timeout of the first of them. The caller calls release
// when it asks no more.
func Open(rdb script.Processor, timeout time.Duration) (h *Set, release func()) {
	return opened.Open(rdb, func() *Set { return New(rdb, probed, timeout, nil) }, (*Set).Close)
}

// probed begins the keys that probes read. A user who may not read them gets an answer, too.
const probed = "cacheguard"
