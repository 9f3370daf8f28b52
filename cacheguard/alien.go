package cacheguard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/protocol"
)

const (
	firstYield = time.Minute
	maxYield   = time.Hour
)

// alien decides what to do with an entry of a Cache that is intact but that this program cannot decode: another version of
// the program, which may be running, stored it. If each version replaced the other's entries, both would keep loading the
// key, in turns. So a young entry stays, and the program loads without storing. Only an old entry, which may be left over
// from a version that is gone, is replaced. If the other version then stores again, and so is still running, the next entry
// must be twice as old, up to an hour.
type alien struct {
	mu       sync.Mutex
	yield    time.Duration // how old an entry has to be; 0: firstYield
	replaced time.Time     // when this program first did so since yield was set; zero: not yet
}

// mayReplace reports whether an entry of that age may be replaced.
func (a *alien) mayReplace(age time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case a.yield == 0:
		a.yield = firstYield
	case !a.replaced.IsZero() && now.Add(-age).After(a.replaced):
		a.yield, a.replaced = min(2*a.yield, maxYield), time.Time{}
	}
	if age < a.yield {
		return false
	}
	if a.replaced.IsZero() {
		a.replaced = now
	}
	return true
}

// undecodable reports an entry that is intact but cannot be decoded, and returns its state for the reader: alienEntry if it is
// to stay, else unusable.
func (g *Guard) undecodable(key string, p *policy, e protocol.Entry, err error) state {
	k := p.kind
	if k == nil && errors.Is(err, errOfAKind) {
		return alienEntry
	}
	if k == nil {
		g.onDamaged(key, err)
		return unusable
	}
	g.cfg.Hooks.damaged(key, err) // the line below is that of the kind
	k.unread.Log(context.Background(), g.cfg.Logger, slog.LevelWarn, "entry cannot be decoded", key,
		p.logAttrs("error", err)...)
	if k.alien.mayReplace(g.serverClocks.Age(key, e.Written)) {
		return unusable
	}
	return alienEntry
}
