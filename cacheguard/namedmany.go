package cacheguard

import (
	"context"
	"errors"
	"time"
)

// GetMany returns the things with the keys. It makes one call of LoadMany for those that nobody is loading, or calls Load for each
// if there is no LoadMany. Everything said of the function GetMany holds: things that do not exist are absent from the result
// without an error, and the error joins a *KeyError for each key that failed.
func (c *Cache[K, V]) GetMany(ctx context.Context, ks []K) (map[K]V, error) {
	if c == nil {
		return nil, errNilCache
	}
	keys, spec := c.many(ks)
	found, err := getMany(ctx, c.guard, keys.named, spec)
	values := make(map[K]V, len(found))
	for _, k := range ks {
		if v, ok := found[c.Key(k)]; ok {
			values[k] = v
		}
	}
	return values, errors.Join(append(keys.refused, err)...)
}

// manyKeys are the keys of a GetMany.
type manyKeys struct {
	named   []string // each once
	refused []error
}

// many returns the keys of the things, and how to load them.
func (c *Cache[K, V]) many(ks []K) (keys manyKeys, spec loadSpec[V]) {
	byKey := make(map[string]K, len(ks))
	for _, k := range ks {
		key := c.Key(k)
		if key == "" {
			keys.refused = append(keys.refused, &KeyError{Err: errEmptyKey})
			continue
		}
		if _, twice := byKey[key]; !twice {
			byKey[key] = k
			keys.named = append(keys.named, key)
		}
	}
	spec = loadSpec[V]{policy: &c.policy, kind: c.policy.kind.name, loadMany: c.loaderOf(byKey)}
	if c.cfg.LoadMany == nil {
		spec.loadMany, spec.loadEach = nil, func(ctx context.Context, key string) (V, error) { return c.loader(byKey[key])(ctx) }
	}
	if c.hasTags() {
		spec.tagsEach = func(key string, v *V) []string { return c.tags(byKey[key], v) }
	}
	return keys, spec
}

// loaderOf is LoadMany by the Guard's keys.
func (c *Cache[K, V]) loaderOf(byKey map[string]K) func(context.Context, []string) (map[string]V, error) {
	return func(ctx context.Context, missing []string) (map[string]V, error) {
		ks := make([]K, len(missing))
		for i, key := range missing {
			ks[i] = byKey[key]
		}
		loaded, err := c.cfg.LoadMany(ctx, ks)
		values := make(map[string]V, len(loaded))
		for i, key := range missing {
			if v, ok := loaded[ks[i]]; ok {
				values[key] = v
			}
		}
		return values, c.absent(err)
	}
}

// getMany is GetMany for the keys and the loader of a Cache.
func getMany[V any](ctx context.Context, g *Guard, keys []string, spec loadSpec[V]) (map[string]V, error) {
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskGetMany, keys)
	m := &many[V]{guard: g, spec: spec, start: time.Now(), found: make(map[string]V, len(keys))}
	m.run(ctx, keys)
	err := errors.Join(m.errs...)
	end(End{Err: err})
	return m.found, err
}

// run gets the keys.
func (m *many[V]) run(ctx context.Context, keys []string) {
	rest := m.admit(ctx, keys)
	m.asked = m.guard.clock.Now()
	for asks := 0; len(rest) > 0; asks++ {
		if asks <= maxAsks {
			rest = m.loadAll(ctx, m.readKeys(ctx, rest))
		} else {
			rest = m.loadAll(ctx, m.unread(ctx, rest))
		}
	}
}
