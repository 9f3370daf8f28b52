package cacheguard

import "context"

// Peek looks whether the cache has the thing, in the local tier and then in Redis, and says how it came by it. It loads
// nothing and takes no lease, and no EventGet reports it. The error is ErrNotCached if there is nothing that a Get
// might return: also while Redis does not answer or the cache may not be used (Config.Gate, Bypass), and in an Intent
// or a write that must read past the cache. For a thing that is known not to exist it is CacheConfig.NotFound, with the
// outcome negative. A value past its TTL is returned within StaleFor, with the outcome stale, as a Get returns it;
// nothing is refreshed. What this Guard is just storing is waited for.
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
