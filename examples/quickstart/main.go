// Quickstart lets a crowd of callers hammer one product whose cache entry keeps expiring: first with a cache as it is
// usually written by hand, then with cacheguard, and compares what that did to the database.
//
// It needs nothing but Go. REDIS_URL and DATABASE_URL name a real Redis and a real PostgreSQL to use instead.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
)

// guardedShop is all it takes: one Guard for each process, and the query in the place where a cache would miss.
type guardedShop struct {
	*cacheguard.Guard
	db *backends.ProductDB
}

func openGuarded(rdb *redis.Client, db *backends.ProductDB, prefix string, ttl time.Duration) (shop, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: prefix, TTL: ttl})
	return guardedShop{guard, db}, err
}

func (s guardedShop) Product(ctx context.Context, id int) (backends.Product, error) {
	return cacheguard.Get(ctx, s.Guard, fmt.Sprintf("product:%d", id), func(ctx context.Context) (backends.Product, error) {
		return s.db.Product(ctx, id)
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
