package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/cas"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/segment"
)

// claims are the users who have an order, or are about to. A claim is a value that only one can create.
type claims struct{ store *cas.Store }

// sell claims a place for the user and then takes a unit. When there is none, the claim is given up. A process that dies
// in between leaves a user who cannot order, and never one who orders twice.
func (c claims) sell(ctx context.Context, user int, take func() error) error {
	key := fmt.Sprintf("buyer:%d", user)
	claim, err := cas.Swap(ctx, c.store, key, "", "")
	switch {
	case errors.Is(err, cas.ErrConflict):
		return errAlready
	case err != nil:
		return err
	}
	if err := take(); err != nil {
		return errors.Join(err, cas.Delete(context.WithoutCancel(ctx), c.store, key, claim))
	}
	return nil
}

// swapping takes from the stock by compare-and-swap: nobody holds a lock, and a sale that was overtaken tries again. The requests of one
// instance take turns, so that it is overtaken by the others only and not by itself.
type swapping struct {
	claims
	turn chan struct{}
}

func openSwapping(o opening) (seller, error) {
	store, err := cas.New(o.rdb, cas.Config{
		Prefix: o.prefix + ":cas", RedisTimeout: backends.Patience, MaxAttempts: -1, // until the request ends
	})
	if err != nil {
		return nil, err
	}
	return swapping{claims{store}, make(chan struct{}, 1)}, nil
}

func (s swapping) Put(ctx context.Context, units int) error {
	_, err := cas.Swap(ctx, s.store, "stock", "", units)
	return err
}

func (s swapping) Sell(ctx context.Context, user int) error {
	return s.sell(ctx, user, func() error {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, err := cas.Update(ctx, s.store, "stock", func(left int, _ bool) (int, error) {
			if left == 0 {
				return 0, errSoldOut
			}
			return left - 1, nil
		})
		return err
	})
}

func (s swapping) Left(ctx context.Context) (int, error) {
	left, _, err := cas.Get[int](ctx, s.store, "stock")
	return left, err
}

func (s swapping) Close() error { return s.store.Close() }

// segmented takes from a stock that is split over several keys. Taking is one script: nobody looks first.
type segmented struct {
	claims
	stock *segment.Counter
}

func openSegments(o opening) (seller, error) {
	store, err := cas.New(o.rdb, cas.Config{Prefix: o.prefix + ":cas", RedisTimeout: backends.Patience})
	if err != nil {
		return nil, err
	}
	stock, err := segment.New(o.rdb, segment.Config{Prefix: o.prefix + ":segment", RedisTimeout: backends.Patience})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return segmented{claims{store}, stock}, nil
}

func (s segmented) Put(ctx context.Context, units int) error {
	return s.stock.Create(ctx, "stock", int64(units))
}

func (s segmented) Sell(ctx context.Context, user int) error {
	return s.sell(ctx, user, func() error {
		err := s.stock.Take(ctx, "stock", 1)
		if errors.Is(err, segment.ErrShort) {
			return errSoldOut
		}
		return err
	})
}

func (s segmented) Left(ctx context.Context) (int, error) {
	left, err := s.stock.Total(ctx, "stock")
	return int(left), err
}

func (s segmented) Close() error { return errors.Join(s.stock.Close(), s.store.Close()) }
