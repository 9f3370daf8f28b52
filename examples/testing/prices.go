// Package testing shows how to test code that uses a Guard: on a Redis in the process, with a clock that the test moves.
package testing

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// A Source is where prices come from: a database, and in the tests a map that counts.
type Source interface {
	Price(ctx context.Context, id string) (int, error)
	SavePrice(ctx context.Context, id string, price int) error
}

// Prices are cached prices.
type Prices struct {
	source Source
	guard  *cacheguard.Guard
}

// New caches the prices of a source in Redis. The observers are for metrics, and for tests.
func New(rdb *redis.Client, source Source, observers ...cacheguard.Observer) (*Prices, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: "prices", TTL: time.Minute, StaleFor: time.Hour, Observers: observers,
	})
	return &Prices{source, guard}, err
}

// Get returns a price, from the cache or the source.
func (p *Prices) Get(ctx context.Context, id string) (int, error) {
	return cacheguard.Get(ctx, p.guard, id, func(ctx context.Context) (int, error) {
		return p.source.Price(ctx, id)
	})
}

// Set changes a price, and the cache forgets the old one.
func (p *Prices) Set(ctx context.Context, id string, price int) error {
	return p.guard.Update(ctx, id, func(ctx context.Context) error {
		return p.source.SavePrice(ctx, id, price)
	})
}

// Close waits for what is under way.
func (p *Prices) Close() error { return p.guard.Close() }
