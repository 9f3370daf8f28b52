package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
)

// hotProduct is the one that everybody wants.
const hotProduct = 42

// A shop is one instance of a service that reads products through a cache.
type shop interface {
	Product(ctx context.Context, id int) (backends.Product, error)
	Close() error
}

// opener opens an instance. Its entries in Redis begin with the prefix and live for the ttl.
type opener func(rdb *redis.Client, db *backends.ProductDB, prefix string, ttl time.Duration) (shop, error)

// entryKey is where a product's entry is in Redis. A Guard keeps the key K at Prefix:{K}; the shop by hand does the same,
// so that one watcher does for both.
func entryKey(prefix string, id int) string { return fmt.Sprintf("%s:{product:%d}", prefix, id) }
