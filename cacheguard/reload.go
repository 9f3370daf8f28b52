package cacheguard

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	mostReloads = 1000 // keys, or names, that wait at most
	lookShare   = 10   // of the time goes at most into looking which keys have names that were invalidated
)

// reloads are keys that were asked for here, and that were invalidated and not replaced: by another process, or with a name that they have. They are
// loaded in the background if Redis does not have them, in slots that nobody waits for. While some are, others wait; what is too much is left to
// those who ask for it.
type reloads struct {
	mu      sync.Mutex
	keys    map[string]recent
	names   map[string]bool // whose keys have not been looked for
	running bool
}

// listen has this instance load what others invalidate, if it can hear of that.
func (g *Guard) listen() bool {
	if goredis.IsRing(g.rdb) || g.cfg.Disabled || g.life.Ending.Err() != nil {
		return false
	}
	l := &wake.Listener{Missed: func(bool) {}, Heard: func(payload string) {
		switch n, ok := tier.ParseNotice(payload); {
		case !ok || n.Stays || g.notices.Own(n.Source):
		case n.Many:
			g.reloadNamed(n.Key)
		default:
			g.reload(context.Background(), n.Key)
		}
	}}
	if g.listener.CompareAndSwap(nil, l) {
		g.inbox.Listen(g.notices.Channel, l)
	}
	return true
}

// reload has keys loaded that were asked for lately.
func (g *Guard) reload(ctx context.Context, keys ...string) {
	for _, key := range keys {
		g.want(ctx, key, &g.reloads)
	}
	g.loadThem()
}

// want adds a key to others if it was asked for lately, or counts it if it cannot be loaded.
func (g *Guard) want(ctx context.Context, key string, others *reloads) {
	of, why := g.replaceable(ctx, key, 0)
	if of != nil && !others.add(key, of) {
		why = errTooManyWait
	}
	if why != nil {
		g.unreplaced(ctx, key, why)
	}
}

// reloadNamed has the keys loaded that were asked for lately, and have one of the names.
func (g *Guard) reloadNamed(names ...string) {
	if g.listener.Load() != nil && len(names) > 0 {
		g.reloads.addNames(names)
		g.loadThem()
	}
}

// add reports whether there was room.
func (r *reloads) add(key string, of recent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = make(map[string]recent)
	}
	if len(r.keys) >= mostReloads {
		return false
	}
	r.keys[key] = of
	return true
}

func (r *reloads) addNames(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = make(map[string]bool)
	}
	for _, name := range names {
		if len(r.names) >= mostReloads {
			name = epoch.All // whose keys are loaded if they are missing
		}
		r.names[name] = true
	}
}

// take takes all that waits; nothing: then somebody has to run for what comes next.
func (r *reloads) take() (keys map[string]recent, names map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, names = r.keys, r.names
	r.keys, r.names = nil, nil
	r.running = len(keys)+len(names) > 0
	return keys, names
}

// loadThem has what waits loaded.
func (g *Guard) loadThem() {
	r := &g.reloads
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running && len(r.keys)+len(r.names) > 0 {
		r.running = g.life.Try(g.loadWaiting) // stop: the end of the Guard
	}
}

// loadWaiting loads keys until none waits.
func (g *Guard) loadWaiting() {
	ctx, cancel := g.apart(context.Background())
	defer cancel()
	for ctx.Err() == nil {
		keys, names := g.reloads.take()
		if len(keys)+len(names) == 0 {
			return
		}
		begun, by := time.Now(), make(map[any][]recent)
		for _, of := range g.withNamed(keys, names) {
			by[of.cache()] = append(by[of.cache()], of)
		}
		looked := time.Since(begun)
		for _, of := range by {
			of[0].warm(ctx, of)
		}
		lifecycle.Sleep(ctx, lookShare*looked)
	}
}

// withNamed adds those that have one of the names to the keys, as far as there is room.
func (g *Guard) withNamed(keys map[string]recent, names map[string]bool) map[string]recent {
	if len(names) == 0 {
		return keys
	}
	all := reloads{keys: keys}
	for _, k := range g.kinds.all() {
		every := names[epoch.All] || names[epoch.OfKind(k.name)]
		for key := range k.lately.Load().All() {
			if every || g.epochs.Had(key, k.name, names) {
				g.want(context.Background(), key, &all)
			}
		}
	}
	return all.keys
}
