package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

// shop is the database. The price of a product is how often it was changed.
type shop struct {
	prices   []atomic.Int64
	replaced []atomic.Int64 // prices that are shown no more: an update to them has returned

	queries, running, most atomic.Int64
	took                   atomic.Int64 // by all queries, in nanoseconds
}

func newShop(products int) *shop {
	return &shop{prices: make([]atomic.Int64, products), replaced: make([]atomic.Int64, products)}
}

// price is the query.
func (s *shop) price(ctx context.Context, product int) (int64, error) {
	s.queries.Add(1)
	now := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	price, began := s.prices[product].Load(), time.Now()
	if !program.Pause(ctx, query) {
		return 0, fmt.Errorf("price of %d: %w", product, context.Cause(ctx))
	}
	s.took.Add(int64(time.Since(began)))
	return price, nil
}

// heldUp says that queries, which only wait, took twice as long as they should, so other times say nothing either; else it is empty.
func (s *shop) heldUp() string {
	mean := time.Duration(s.took.Load() / max(s.queries.Load(), 1))
	if mean < 2*query {
		return ""
	}
	return fmt.Sprintf("%s: a query took %s on average", program.Busy, table.Millis(mean))
}

// change raises a price, within an update of the cache.
func (s *shop) change(ctx context.Context, product int, update func(context.Context, int, func(context.Context) error) error) error {
	var price int64
	err := update(ctx, product, func(ctx context.Context) error {
		if !program.Pause(ctx, query/2) {
			return context.Cause(ctx)
		}
		price = s.prices[product].Add(1)
		return nil
	})
	if err == nil {
		s.replaced[product].Store(price) // one writer changes it, so prices only rise
	}
	return err
}

// older is the cache that the service has had: GET and SET by hand, JSON under keys of its own. A reader may store what it read before a write, after
// the write has deleted the key: then it serves an old value until its TTL ends.
type older struct {
	redis  *redis.Client
	prefix string
	shop   *shop
}

type olderEntry struct {
	Price int64 `json:"price"`
}

const olderTTL = 500 * time.Millisecond

func (o older) key(product int) string { return o.prefix + ":price:" + strconv.Itoa(product) }

func (o older) price(ctx context.Context, product int) (int64, error) {
	var e olderEntry
	raw, err := o.redis.Get(ctx, o.key(product)).Bytes()
	switch {
	case err == nil:
		err = json.Unmarshal(raw, &e)
		return e.Price, err
	case !errors.Is(err, redis.Nil):
		return 0, err
	}
	if e.Price, err = o.shop.price(ctx, product); err != nil {
		return 0, err
	}
	if raw, err = json.Marshal(e); err != nil {
		return 0, err
	}
	return e.Price, o.redis.Set(ctx, o.key(product), raw, olderTTL).Err()
}

func (o older) forget(ctx context.Context, product int) error {
	return o.redis.Del(ctx, o.key(product)).Err()
}
