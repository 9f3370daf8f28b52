package send

import (
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

const (
	failover = 250 * time.Millisecond // what is refused for longer is sent once
	gap      = time.Second            // without a refusal, after which the next one is the first of others
)

// noWrites is a time in which a lane's writes are refused, as by a primary that is one no more, or lacks replicas. The
// client asks again then, with pauses of a tenth of a second together, because a failover may be over. In one that is
// not, those who wait would have turns of that length.
type noWrites struct {
	mu          sync.Mutex
	first, last time.Time // refusals
}

func writesRefused(err error) bool { return err != nil && script.Says(err, "READONLY", "NOREPLICAS") }

func (w *noWrites) note(err error) {
	if !writesRefused(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.last) > gap {
		w.first = now
	}
	w.last = now
}

// goOn reports whether they are refused for longer than a failover takes.
func (w *noWrites) goOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.Sub(w.first) > failover && time.Since(w.last) < gap
}
