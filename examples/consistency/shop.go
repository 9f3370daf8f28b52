package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	ttl          = time.Minute           // of what is cached: longer than a run
	secondDelete = 20 * time.Millisecond // how long after the write: several times what a query takes, but not a slow one
)

// A shop is one instance of a service with prices and a cache.
type shop interface {
	Price(ctx context.Context, id int) (cents int64, err error)
	Raise(ctx context.Context, id int) (cents int64, err error) // by a cent
	Close() error
}

// A pattern is a way to keep cache and database in step.
type pattern struct {
	name     string
	open     func(rdb *redis.Client, db *prices, prefix string) (shop, error)
	promises bool // that no read is stale
}

var patterns = []pattern{
	{"by hand: delete after write", openDeleteAfterWrite, false},
	{"by hand: delayed double delete", openDelayedDoubleDelete, false},
	{"Guard: Invalidate after write", openInvalidating, true},
	{"Guard: Update", openUpdating, true},
	{"Guard: Update, commit after it", openCommittingLate, false},
	{"Guard: Intend, commit after it", openIntending, true},
	{"Guard: Update and read locks", openReadLocking, true},
}

func priceKey(id int) string { return fmt.Sprintf("price:%d", id) }
