package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newDatabase(connections int, latency time.Duration) *database {
	d := &database{pool: make(chan struct{}, connections)}
	d.latency.Store(int64(latency))
	return d
}

func TestQueriesThatFindNoConnectionAreServedInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, began := newDatabase(2, time.Second), time.Now()
		var mu sync.Mutex
		var done []int
		var took []time.Duration
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				if _, err := d.query(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				done, took = append(done, i/2), append(took, time.Since(began))
			})
			synctest.Wait()
		}
		if busy, queued := len(d.pool), d.queued.Load(); busy != 2 || queued != 3 {
			t.Errorf("%d busy, %d queued", busy, queued)
		}
		all.Wait()
		if !slices.Equal(done, []int{0, 0, 1, 1, 2}) {
			t.Errorf("pairs ended in the order %v", done)
		}
		const s = time.Second
		if !slices.Equal(took, []time.Duration{s, s, 2 * s, 2 * s, 3 * s}) {
			t.Errorf("took %v", took)
		}
	})
}

func TestAQueryThatIsGivenUpLeavesTheQueueAndItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(1, time.Hour)
		ctx, giveUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := d.query(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		giveUp()
		all.Wait()
		if busy, queued := len(d.pool), d.queued.Load(); busy != 0 || queued != 0 {
			t.Errorf("%d busy, %d queued", busy, queued)
		}
	})
}

func TestAQueryReturnsTheRowAsItWasWhenItBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(2, time.Second)
		var all sync.WaitGroup
		all.Go(func() {
			if err := d.write(t.Context()); err != nil {
				t.Error(err)
			}
		})
		p, err := d.query(t.Context())
		all.Wait()
		if later, lerr := d.query(t.Context()); p.Version != 0 || later.Version != 1 || err != nil || lerr != nil {
			t.Errorf("version %d, %v, then %d, %v", p.Version, err, later.Version, lerr)
		}
	})
}
