package cacheguard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/keytext"
)

// throughCaches holds the Guards whose values tests get through a Cache, with a loader that travels in the context.
var throughCaches sync.Map

const namedName = "named"

type namedLoader[V any] struct{}

// getOn is Get, or that of a Cache.
func getOn[V any](ctx context.Context, g *Guard, key string, load func(context.Context) (V, error)) (V, error) {
	if _, named := throughCaches.Load(g); !named {
		return Get(ctx, g, key, load)
	}
	c := &Cache[string, V]{guard: g, cfg: CacheConfig[string, V]{
		Load: func(ctx context.Context, _ string) (V, error) {
			return ctx.Value(namedLoader[V]{}).(func(context.Context) (V, error))(ctx)
		},
	}}
	c.text, _ = keytext.Of[string]()
	c.open(&kind{name: namedName, watched: g.journal.Kind(namedName)}) // not the one of the Guard, as tests want several types of one key
	return c.Get(context.WithValue(ctx, namedLoader[V]{}, load), key)
}

// keyOn is the Guard's key of the key that a test gets.
func keyOn(g *Guard, key string) string {
	if _, named := throughCaches.Load(g); named && key != "" {
		return namedName + ":" + key
	}
	return key
}

// kindOn is the kind that the key of a test belongs to.
func kindOn(g *Guard) string {
	if _, named := throughCaches.Load(g); named {
		return namedName
	}
	return ""
}

func keysOn(g *Guard, keys []string) []string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = keyOn(g, key)
	}
	return all
}

// getManyOn is GetMany, or that of a Cache.
func getManyOn(
	ctx context.Context, g *Guard, keys []string, load func(context.Context, []string) (map[string]string, error),
) (map[string]string, error) {
	if _, named := throughCaches.Load(g); !named {
		return GetMany(ctx, g, keys, load)
	}
	c := &Cache[string, string]{guard: g, cfg: CacheConfig[string, string]{LoadMany: load}}
	c.text, _ = keytext.Of[string]()
	c.open(&kind{name: namedName, watched: g.journal.Kind(namedName)})
	return c.GetMany(ctx, keys)
}

// rack is a source of things that tells how it was asked.
type rack struct {
	mu      sync.Mutex
	many    []int // keys of each call of LoadMany
	one     atomic.Int64
	begun   chan struct{}
	release chan struct{} // nil: calls return at once
	poison  int           // LoadMany fails if asked for it, and Load too
}

var errPoison = errors.New("this row cannot be read")

func (r *rack) config() CacheConfig[int, thing] {
	return CacheConfig[int, thing]{
		Name: "thing",
		Load: func(ctx context.Context, id int) (thing, error) {
			r.one.Add(1)
			if err := r.hold(ctx); err != nil {
				return thing{}, err
			}
			if id == r.poison {
				return thing{}, errPoison
			}
			return thing{ID: id}, nil
		},
		LoadMany: func(ctx context.Context, ids []int) (map[int]thing, error) {
			r.mu.Lock()
			r.many = append(r.many, len(ids))
			r.mu.Unlock()
			if r.begun != nil {
				r.begun <- struct{}{}
			}
			if err := r.hold(ctx); err != nil {
				return nil, err
			}
			if r.poison != 0 && slices.Contains(ids, r.poison) {
				return nil, errPoison
			}
			all := make(map[int]thing, len(ids))
			for _, id := range ids {
				all[id] = thing{ID: id}
			}
			return all, nil
		},
	}
}

// hold waits for release, if there is one.
func (r *rack) hold(ctx context.Context) error {
	if r.release == nil {
		return nil
	}
	select {
	case <-r.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *rack) calls() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.many)
}
