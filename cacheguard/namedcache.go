package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/keytext"
	"github.com/cacheguard/go/internal/run/errs"
)

// Cache is a typed view of a Guard for one kind of thing: it knows its keys, how to load it, and what its loader's
// errors mean. Its methods do what the Guard's and the functions of their names do. It adds no connection and no
// goroutine, needs no Close, and is safe for concurrent use.
type Cache[K comparable, V any] struct {
	guard  *Guard
	cfg    CacheConfig[K, V]
	policy policy
	text   keytext.Text[K]
	before string // what stands before a key's text in Redis
	prefix int    // where the Guard's key begins in it
}

// NewCache returns a Cache of the Guard. The error names every field of cfg that is out of range and, without a Codec,
// the path of a field of V that encoding/json never brings back (one with the tag json:"-" may be anything).
func NewCache[K comparable, V any](g *Guard, cfg CacheConfig[K, V]) (*Cache[K, V], error) {
	if err := g.begin(); err != nil {
		return nil, err
	}
	defer g.life.Done()
	c := &Cache[K, V]{guard: g, cfg: cfg}
	var noKey error
	if cfg.Key != nil {
		c.text = keytext.By(cfg.Key)
	} else if c.text, noKey = keytext.Of[K](); noKey != nil {
		noKey = fmt.Errorf("CacheConfig.Key: %w", noKey)
	}
	if err := errors.Join(cfg.check(), noKey); err != nil {
		return nil, fmt.Errorf("cacheguard: %w", err)
	}
	if err := errors.Join(cfg.checkWithin(g), cfg.encodable(g)); err != nil {
		return nil, fmt.Errorf("cacheguard: %w", err)
	}
	k, err := cfg.kind(g)
	if err != nil {
		return nil, fmt.Errorf("cacheguard: %w", err)
	}
	c.open(k)
	return c, nil
}

// open makes the Cache one of the kind.
func (c *Cache[K, V]) open(k *kind) {
	c.policy = c.cfg.policy(c.guard)
	c.policy.kind = k
	c.before = strings.TrimSuffix(c.guard.keys.ValueKey(k.name+":"), "}")
	c.prefix = len(c.before) - len(k.name) - 1
}

// Get returns the thing with the key, from the cache or from Load. If there is none, the error is CacheConfig.NotFound.
func (c *Cache[K, V]) Get(ctx context.Context, k K) (V, error) {
	if c == nil {
		var none V
		return none, errNilCache
	}
	v, _, err := c.ask(ctx, k)
	return v, err
}

// own makes what was got the caller's own.
func (c *Cache[K, V]) own(v V, err error) V {
	if err == nil && c.cfg.Clone != nil {
		return c.cfg.Clone(v)
	}
	return v
}

// ask is Get with the outcome.
func (c *Cache[K, V]) ask(ctx context.Context, k K) (V, Outcome, error) {
	key, valueKey := c.keys(k)
	spec := loadSpec[V]{load: load{policy: &c.policy, valueKey: valueKey}}
	v, how, err := ask(ctx, c.guard, key, &spec, func() { c.complete(&spec, k) })
	return c.own(v, err), how, err
}

// complete adds to the spec how to load the thing.
func (c *Cache[K, V]) complete(spec *loadSpec[V], k K) {
	spec.loader, spec.tagger = c.loader(k), c.tagger(k)
}

// specOf is the spec of a load of the thing.
func (c *Cache[K, V]) specOf(k K) (spec loadSpec[V]) {
	spec.policy = &c.policy
	c.complete(&spec, k)
	return spec
}

// loader returns the loader of a key.
func (c *Cache[K, V]) loader(k K) func(context.Context) (V, error) {
	return func(ctx context.Context) (V, error) { return c.cfg.Load(ctx, k) }
}

// loadMany is CacheConfig.LoadMany for keys that share a call.
func (c *Cache[K, V]) loadMany(of map[string]K) batchLoad {
	return func(ctx context.Context, keys []string) (map[string]any, error) {
		ks := make([]K, len(keys))
		for i, key := range keys {
			ks[i] = of[key]
		}
		loaded, err := c.cfg.LoadMany(ctx, ks)
		values := make(map[string]any, len(loaded))
		row := c.rowsOf(loaded)
		for i, key := range keys {
			if v, ok := row(ks[i], key); ok {
				values[key] = &v
			}
		}
		return values, err
	}
}

// rowsOf returns a function that finds what LoadMany returned for a key: under the key, or under another one of the
// same text, as one in another case if Key ignores case.
func (c *Cache[K, V]) rowsOf(loaded map[K]V) func(k K, key string) (V, bool) {
	var byText map[string]K // nil: not made yet
	return func(k K, key string) (V, bool) {
		if v, ok := loaded[k]; ok || len(loaded) == 0 {
			return v, ok
		}
		if byText == nil {
			byText = make(map[string]K, len(loaded))
			for other := range loaded {
				byText[c.Key(other)] = other
			}
		}
		if other, ok := byText[key]; ok {
			k = other
		}
		v, ok := loaded[k]
		return v, ok
	}
}

func (c *Cache[K, V]) hasTags() bool { return c.cfg.Tags != nil || c.cfg.AbsentTags != nil }

// tags returns the tags of the thing, or of its absence, which is nil.
func (c *Cache[K, V]) tags(k K, v *V) []string {
	switch {
	case v != nil && c.cfg.Tags != nil:
		return c.cfg.Tags(k, *v)
	case v == nil && c.cfg.AbsentTags != nil:
		return c.cfg.AbsentTags(k)
	}
	return nil
}

// tagger returns the function for the tags of the thing; nil: it has none but those of SetTags.
func (c *Cache[K, V]) tagger(k K) func(string, *V) []string {
	if !c.hasTags() {
		return nil
	}
	return func(_ string, v *V) []string { return c.tags(k, v) }
}

// keys returns the Guard's key of k, which is empty if there is none, and the key of its value in Redis, which contains
// the former.
func (c *Cache[K, V]) keys(k K) (key, valueKey string) {
	var room [128]byte
	text := c.text.AppendTo(append(room[:0], c.before...), k)
	if len(text) == len(c.before) {
		return "", ""
	}
	valueKey = string(append(append(text, '}'), c.policy.kind.slot...))
	return valueKey[c.prefix:len(text)], valueKey
}

// Key is the Guard's key of k, for methods that take one, such as Guard.UpdateMany. The functions Get, Fetch and
// GetMany load each time with it: the entry is the Cache's. It is empty, and refused by every call, if the text of k is
// empty or its MarshalText fails.
func (c *Cache[K, V]) Key(k K) string {
	if c == nil {
		return ""
	}
	key, _ := c.keys(k)
	return key
}

// Invalidate removes the things from the cache; see Guard.Invalidate.
func (c *Cache[K, V]) Invalidate(ctx context.Context, keys ...K) error {
	if c == nil {
		return errNilCache
	}
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = c.Key(k)
	}
	return c.guard.Invalidate(ctx, all...)
}

// InvalidateAll is Invalidate for all things of this kind, in a round trip. An Intent names a tag of all, instead.
func (c *Cache[K, V]) InvalidateAll(ctx context.Context) error {
	if c == nil {
		return errNilCache
	}
	return c.guard.invalidateNames(ctx, []string{epoch.OfKind(c.policy.kind.name)})
}

// Update writes to the source, and write contains the commit; see Guard.Update.
func (c *Cache[K, V]) Update(ctx context.Context, k K, write func(context.Context) error) error {
	if c == nil {
		return notCalled(errNilCache)
	}
	return c.guard.Update(ctx, c.Key(k), write)
}

// Stats returns what all Caches of this name are doing.
func (c *Cache[K, V]) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	all := c.policy.kind.counts.Read()
	s := Stats{numbers: &all}
	s.Loading, s.Pending = int(s.Of("loads_in_flight")), int(s.Of("pending_invalidations"))
	return s
}

// Name is CacheConfig.Name.
func (c *Cache[K, V]) Name() string {
	if c == nil {
		return ""
	}
	return c.cfg.Name
}

// Guard is the Guard of the Cache.
func (c *Cache[K, V]) Guard() *Guard {
	if c == nil {
		return nil
	}
	return c.guard
}

// GetMany returns the things with the keys. What nobody is loading, it loads with one call of LoadMany or, without
// LoadMany, of Load for each. Things that do not exist are absent from the result, without an error.
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
