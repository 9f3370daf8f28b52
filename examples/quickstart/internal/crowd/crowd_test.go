package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// fakeShop answers its calls with what a func returns.
type fakeShop func(context.Context) error

func (f fakeShop) Product(ctx context.Context, _ int) (product, error) {
	return product{}, f(ctx)
}

func (fakeShop) Close() error { return nil }

func TestTheCrowdCountsAnswersAndFailures(t *testing.T) {
	t.Parallel()
	open, closing := context.WithCancel(t.Context())
	why := errors.New("sold out")
	var served atomic.Int64
	odd := fakeShop(func(context.Context) error {
		n := served.Add(1)
		if n == 10 {
			closing()
		}
		if n%2 == 1 {
			return why
		}
		return nil
	})
	got := crowd(t.Context(), open, []shop{odd, odd}, 2)
	total := served.Load()
	if int64(got.failed) != (total+1)/2 || int64(len(got.waits)) != total/2 {
		t.Errorf("%d calls: %d failed and %d answered, want half of each", total, got.failed, len(got.waits))
	}
	if !errors.Is(got.err, why) {
		t.Errorf("error is %v, want %v", got.err, why)
	}
}

func TestCallsUnderWayAreLetFinish(t *testing.T) {
	t.Parallel()
	open, closing := context.WithCancel(t.Context())
	last := fakeShop(func(ctx context.Context) error {
		closing()
		return ctx.Err()
	})
	if got := crowd(t.Context(), open, []shop{last}, 1); len(got.waits) != 1 || got.failed != 0 {
		t.Errorf("%d answered, %d failed (%v), want 1 and 0", len(got.waits), got.failed, got.err)
	}
}

func TestAnInterruptIsNoFailureOfTheShop(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	slow := fakeShop(func(ctx context.Context) error {
		interrupt()
		return ctx.Err()
	})
	if got := crowd(ctx, ctx, []shop{slow, slow}, 3); got.failed != 0 {
		t.Errorf("%d failed: %v", got.failed, got.err)
	}
}
