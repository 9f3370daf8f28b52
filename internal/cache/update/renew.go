package update

import (
	"fmt"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// renew keeps the intents renewed until the caller calls stop, but no longer than UpdateTimeout: a write that ignores its
// context must not keep others from storing for ever. Stop returns an error if UpdateTimeout was over first.
func (u *Update) renew() (stop func() error) {
	intents := make([]lease.Renewal, len(u.keys))
	for i, key := range u.keys {
		intents[i] = lease.Renewal{Lease: announced{u, key}, TTL: u.of.Keys.IntentTTL()}
		u.of.Keeper.Keep(&intents[i])
	}
	drop := sync.OnceFunc(func() {
		for i := range intents {
			u.of.Keeper.Drop(&intents[i])
		}
	})
	inTime := u.untilTimeout(drop)
	return func() error {
		defer drop()
		return inTime()
	}
}

// untilTimeout calls end when UpdateTimeout is over, unless the caller calls stop first. Otherwise stop returns an error.
func (u *Update) untilTimeout(end func()) (stop func() error) {
	limit := u.of.Timeout
	if limit < 0 {
		return func() error { return nil }
	}
	timer := time.AfterFunc(limit, end) // owner: the update; stop: stop; joined by end, which runs once
	return func() error {
		if timer.Stop() {
			return nil
		}
		return fmt.Errorf("cacheguard: update %q: write took longer than UpdateTimeout (%v), and others may have written meanwhile: %w",
			u.keys, limit, lifecycle.ErrLeaseLost)
	}
}

// announced is an update of a key, as its keeper sees it.
type announced struct {
	*Update
	key string
}

func (i announced) Due() script.Call {
	return i.of.Keys.RenewUpdate(i.of.Keys.ValueKey(i.key), i.token)
}
func (i announced) Kept(time.Time, int) {}
func (i announced) Lost(int)            {}
