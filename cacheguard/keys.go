package cacheguard

import "github.com/cacheguard/go/internal/keys"

// redisKey is the key in Redis of a value, P:{K} for key K under prefix P. Its lease is at P:{K}:lease.
func (g *Guard) redisKey(key string) string { return keys.Tagged(g.cfg.Prefix, key) }

func leaseKey(valueKey string) string {
	return valueKey + ":lease"
}
