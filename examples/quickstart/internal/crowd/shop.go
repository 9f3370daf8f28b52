package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A shop is one instance of a service that reads products through a cache.
type shop interface {
	Product(ctx context.Context, id int) (product, error)
	Close() error
}

// contestant is a kind of shop. The last contestant has to keep cacheguard's promise.
type contestant struct {
	Name string
	// Open opens an instance. In Redis, the entry of the product with the id N is prefix:{product:N}, where a Guard keeps that
	// of the key product:N, and lives for the ttl.
	Open func(rdb *redis.Client, db *database, prefix string, ttl time.Duration) (shop, error)
}

// hotProduct is the one that everybody wants.
const hotProduct = 42

// entryKey is where its entry is, so that one watcher does for all.
func entryKey(prefix string) string { return fmt.Sprintf("%s:{product:%d}", prefix, hotProduct) }
