package cacheguard

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// scope says within which loads and updates of the same Guard a call is made, according to its context.
type scope struct {
	nested  bool    // a loader makes the call
	writing bool    // the write of an update of the key makes it
	intent  *Intent // within whose transaction it reads past the cache; nil: it does not have to
}

func scopeOf(ctx context.Context, g *Guard, key string) scope {
	p := pastOf(ctx, g, key)
	return scope{nested: loadingOf(ctx).within(g), writing: updateOf(ctx).includes(g, key), intent: p.intent()}
}

// loading is a load under way, found in the context of its loader.
type loading struct {
	loaders *loaders // nil: the write of a Put makes the value
	keys    []string
	parent  *loading     // the load whose loader made this one necessary
	ttl     atomic.Int64 // set by SetTTL; unset: the Guard's
	batch   *batch       // that the load is part of; nil: of none

	mu   sync.Mutex
	tags []string // set by SetTags
}

// addTags adds tags. If there are too many, it keeps just enough to show that.
func (l *loading) addTags(tags []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tags)+len(tags) > 2*maxTags {
		l.tags = union(l.tags)
		tags = tags[:min(len(tags), 2*maxTags)]
	}
	if len(l.tags) <= maxTags {
		l.tags = append(l.tags, tags...)
	}
}

// allTags returns the tags that addTags got.
func (l *loading) allTags() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tags)
}

// unset is a TTL that nobody chooses: too long for any clock.
const unset = int64(^uint64(0) >> 1)

type loadingKey struct{}

func newLoading(ctx context.Context, l *loaders, keys ...string) *loading {
	load := &loading{loaders: l, keys: keys, parent: loadingOf(ctx)}
	load.ttl.Store(unset)
	return load
}

// outsideLoads returns the context for work that is no part of the load that asked for it.
func outsideLoads(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadingKey{}, (*loading)(nil))
}

func loadingOf(ctx context.Context) *loading {
	l, _ := ctx.Value(loadingKey{}).(*loading)
	return l
}

// includes reports whether the key is being loaded by l, or by a load that l serves.
func (l *loading) includes(g *Guard, key string) bool {
	for ; l != nil; l = l.parent {
		if l.loaders == &g.loaders && slices.Contains(l.keys, key) {
			return true
		}
	}
	return false
}

// within reports whether a loader of the Guard is under way.
func (l *loading) within(g *Guard) bool {
	for ; l != nil; l = l.parent {
		if l.loaders == &g.loaders {
			return true
		}
	}
	return false
}

// SetTTL chooses the TTL of the entry being loaded, or written by a Put. A loader or write calls it with the context that it was given; with another context it does nothing. The Guard's Jitter and StaleFor apply
// as always. The last call counts; in a loader of GetMany, it applies to all its keys. With a ttl of 0 or less, the value reaches those who wait for it, but is not stored. For
// ErrNotFound, the shorter of ttl and NegativeTTL counts.
func SetTTL(ctx context.Context, ttl time.Duration) {
	if l := loadingOf(ctx); l != nil {
		l.ttl.Store(int64(min(max(ttl, 0), longest)))
	}
}

type updateKey struct{}

func updateOf(ctx context.Context) *update {
	u, _ := ctx.Value(updateKey{}).(*update)
	return u
}

// includes reports whether the key is being updated by u, or by one that u is a part of.
func (u *update) includes(g *Guard, key string) bool {
	for ; u != nil; u = u.outer {
		if u.guard == g && slices.Contains(u.keys, key) {
			return true
		}
	}
	return false
}
