package cacheguard

import (
	"context"
	"sync"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/wake"
)

// mostReloads is how many keys wait to be loaded at most.
const mostReloads = 1000

// reloads are keys that were asked for here, and that were invalidated and not replaced: by another process, or with a name that they have. They are
// loaded in the background if Redis does not have them, in slots that nobody waits for. While some are, others wait; what is too much is left to
// those who ask for it.
type reloads struct {
	mu      sync.Mutex
	waiting map[string]recent
	running bool
}

// listen has this instance load what others invalidate, if it can hear of that.
func (g *Guard) listen() bool {
	if goredis.IsRing(g.rdb) || g.cfg.Disabled || g.life.Ending.Err() != nil {
		return false
	}
	l := &wake.Listener{Missed: func() {}, Heard: func(payload string) {
		switch n, ok := tier.ParseNotice(payload); {
		case !ok || g.notices.Own(n.Source):
		case n.Many:
			g.reloadNamed(n.Key)
		default:
			g.reload(n.Key)
		}
	}}
	if g.listener.CompareAndSwap(nil, l) {
		g.inbox.Listen(g.notices.Channel, l)
	}
	return true
}

// reload has a key loaded if it was asked for lately.
func (g *Guard) reload(key string) {
	if of, ok := g.kinds.of(key).lately.Load().Asked(key); ok {
		g.reloadOf(key, of)
	}
}

// reloadNamed has the keys loaded that were asked for lately, and have the name.
func (g *Guard) reloadNamed(name string) {
	for _, k := range g.kinds.all() {
		for key, of := range k.lately.Load().All() {
			if name == epoch.All || name == epoch.OfKind(k.name) || g.epochs.Had(key, k.name, name) {
				if !g.reloadOf(key, of) {
					return
				}
			}
		}
	}
}

// reloadOf reports whether there was room.
func (g *Guard) reloadOf(key string, of recent) bool {
	g.reloads.mu.Lock()
	defer g.reloads.mu.Unlock()
	if len(g.reloads.waiting) >= mostReloads {
		g.journal.Tell(context.Background(), report.Unreplaced, key, errTooMany)
		return false
	}
	if g.reloads.waiting == nil {
		g.reloads.waiting = make(map[string]recent)
	}
	g.reloads.waiting[key] = of
	if !g.reloads.running {
		g.reloads.running = g.life.Try(g.loadWaiting) // stop: the end of the Guard
	}
	return true
}

// loadWaiting loads keys until none waits.
func (g *Guard) loadWaiting() {
	ctx, cancel := g.apart(context.Background())
	defer cancel()
	for {
		g.reloads.mu.Lock()
		all := g.reloads.waiting
		g.reloads.waiting = nil
		g.reloads.running = len(all) > 0 && ctx.Err() == nil
		goesOn := g.reloads.running
		g.reloads.mu.Unlock()
		if !goesOn {
			return
		}
		by := make(map[any][]recent)
		for key, of := range all {
			if !g.isSlow(key) {
				by[of.cache()] = append(by[of.cache()], of)
			}
		}
		for _, of := range by {
			of[0].warm(ctx, of)
		}
	}
}
