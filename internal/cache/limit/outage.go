package limit

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// withoutPermits is how long loads run without permits after Redis did not answer.
const withoutPermits = time.Second

// Suspended reports whether loads need no permits, because Redis does not answer.
func (f *Fleet) Suspended() bool {
	f.mu.Lock()
	open := time.Now().Before(f.open)
	f.mu.Unlock()
	if open || !f.Breaker.IsOpen() {
		return open
	}
	f.probe()
	return true
}

// probe finds out whether Redis answers again, in the background. On a cluster, the breaker is for a part of the slots,
// where the Guard may have no key that anybody asks for.
func (f *Fleet) probe() {
	try, err := f.Breaker.Allow()
	if err != nil {
		return // it is too early, or somebody tries already
	}
	probes := f.Background(func() { // stop: RedisTimeout
		try.Done(f.Permits.Inspect(context.Background(), FleetName, (*script.Reply).Err))
	})
	if !probes {
		try.Done(context.Canceled)
	}
}

// pass lets waiting loads go without permits, and for a while new ones.
func (f *Fleet) pass(why error) {
	if why != nil {
		f.Failed(why)
	}
	f.mu.Lock()
	f.open = time.Now().Add(withoutPermits)
	f.mu.Unlock()
	for range f.waiting.Load() {
		f.local.Release()
	}
}
