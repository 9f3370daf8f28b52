package cacheguard

import "context"

// Peek looks whether the cache has the thing, in the local tier and then in Redis, and says how it came by it. It loads
// nothing and takes no lease, and no EventGet reports it. The error is ErrNotCached if there is nothing that a Get
// might return, also while the cache may not be used, and CacheConfig.NotFound, with the outcome negative, for a thing
// that is known not to exist. Within StaleFor, the outcome may be stale; nothing is refreshed.
func (c *Cache[K, V]) Peek(ctx context.Context, k K) (v V, how Outcome, err error) {
	if c == nil {
		return v, "", errNilCache
	}
	key, valueKey := c.keys(k)
	spec := loadSpec[V]{load: load{policy: &c.policy, valueKey: valueKey}, cacheOnly: true}
	v, how, err = retrieve(ctx, c.guard, key, &spec, nil)
	if c.guard.rehearsal != nil {
		v = handOut(c.guard, &spec, key, v, err)
	}
	return c.own(v, err), how, c.policy.absence(key, err)
}
