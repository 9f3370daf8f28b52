package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cacheguard/go/examples/internal/program"
)

// shop is the database. The price of a product is how often it was changed.
type shop struct {
	prices   []atomic.Int64
	replaced []atomic.Int64 // prices that are shown no more: an update to them has returned

	queries, running, most atomic.Int64
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
	price := s.prices[product].Load()
	if !program.Pause(ctx, query) {
		return 0, fmt.Errorf("price of %d: %w", product, context.Cause(ctx))
	}
	return price, nil
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
