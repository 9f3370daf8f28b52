// Package stampede is the crowd of the quickstart: callers of several instances of a shop, who all want one product whose cache
// entry keeps expiring. It counts what that does to the database, with one kind of shop after the other.
package stampede

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
)

// A Shop is one instance of a service that reads products through a cache.
type Shop interface {
	Product(ctx context.Context, id int) (backends.Product, error)
	Close() error
}

// Contestant is a kind of shop. The last contestant has to keep cacheguard's promise.
type Contestant struct {
	Name string
	// Open opens an instance. In Redis, the entry of the product with the id N is prefix:{product:N}, where a Guard keeps that
	// of the key product:N, and lives for the ttl.
	Open func(rdb *redis.Client, db *backends.ProductDB, prefix string, ttl time.Duration) (Shop, error)
}

// hotProduct is the one that everybody wants.
const hotProduct = 42

// entryKey is where its entry is, so that one watcher does for all.
func entryKey(prefix string) string { return fmt.Sprintf("%s:{product:%d}", prefix, hotProduct) }
