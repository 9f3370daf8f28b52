package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/run/errs"
)

// GetMany returns the things with the keys. It makes one call of LoadMany for the things that nobody is loading, or
// calls Load for each if there is no LoadMany. Everything said of the function GetMany holds: things that do not exist
// are absent from the result without an error, and the error joins a *KeyError for each key that failed.
func (c *Cache[K, V]) GetMany(ctx context.Context, ks []K) (map[K]V, error) {
	if c == nil {
		return nil, errNilCache
	}
	keys, spec := c.many(ks)
	found, err := getMany(ctx, c.guard, keys.named, spec)
	values := make(map[K]V, len(found))
	for _, k := range ks {
		if v, ok := found[c.Key(k)]; ok {
			values[k] = c.own(v, nil)
		}
	}
	return values, errs.Join(append(keys.refused, err)...)
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
	spec = loadSpec[V]{load: load{policy: &c.policy}, loadMany: c.loadMany(byKey)}
	if c.cfg.LoadMany == nil {
		spec.loadMany, spec.loadEach = nil, func(ctx context.Context, key string) (V, error) { return c.loader(byKey[key])(ctx) }
	}
	if c.hasTags() {
		spec.tagger = func(key string, v *V) []string { return c.tags(byKey[key], v) }
	}
	return keys, spec
}
