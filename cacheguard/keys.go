package cacheguard

import "github.com/cacheguard/go/internal/keys"

// redisKey is the key in Redis of a value, P:{K} for key K under prefix P. Its lease is at P:{K}:lease,
// the intent of who updates it at P:{K}:intent, and the lock of Update at P:{K}:rw and more.
func (g *Guard) redisKey(key string) string { return keys.Tagged(g.cfg.Prefix, key) }

func leaseKey(valueKey string) string { return valueKey + ":lease" }

func intentKey(valueKey string) string { return valueKey + ":intent" }
