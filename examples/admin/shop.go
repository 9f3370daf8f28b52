package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/mutex"
)

// shop is a service with callers.
type shop struct {
	server   *backends.RedisServer
	rdb      *redis.Client
	guard    *cacheguard.Guard
	products *cacheguard.Cache[int, product]
	locks    *mutex.Locker
	pages    *middleware.Cache
	callers  sync.WaitGroup
	leave    context.CancelFunc
}

type product struct {
	ID    int
	Name  string
	Cents int
}

// load is a query, of which some are slow.
func load(ctx context.Context, id int) (product, error) {
	took := time.Duration(5+id%20) * time.Millisecond
	if id == 77 {
		took = 400 * time.Millisecond
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return product{}, context.Cause(ctx)
	}
	if id%31 == 30 {
		return product{}, errors.New("the table of prices is locked")
	}
	return product{ID: id, Name: fmt.Sprint("Product ", id), Cents: 999 + id}, nil
}

func openShop(ctx context.Context) (s *shop, err error) {
	s = &shop{leave: func() {}}
	if s.server, err = backends.Redis(ctx); err != nil {
		return nil, err
	}
	s.rdb = s.server.NewClient()
	var errs [4]error
	s.guard, errs[0] = cacheguard.New(s.rdb, cacheguard.Config{
		Prefix: "shop", TTL: 3 * time.Second, MaxLoads: 16, Local: cacheguard.LocalConfig{MaxEntries: 20, TTL: time.Second, HotKeys: 5},
		RedisTimeout: backends.Patience,
	})
	s.products, errs[1] = cacheguard.NewCache(s.guard, cacheguard.CacheConfig[int, product]{
		Name: "product", Load: load,
		Tags: func(id int, _ product) []string { return []string{fmt.Sprint("shelf:", id%5)} },
	})
	s.locks, errs[2] = mutex.New(s.rdb, mutex.Config{Prefix: "shop-lock", RedisTimeout: backends.Patience})
	if s.guard != nil {
		s.pages, errs[3] = middleware.New(s.guard, middleware.Config{})
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.call(ctx)
	return s, nil
}

// call has the shop called until it is closed.
func (s *shop) call(ctx context.Context) {
	ctx, s.leave = context.WithCancel(ctx)
	site := s.router()
	for range 8 {
		s.callers.Go(func() { // owner: the shop; stop: leave; joined by close
			for ctx.Err() == nil {
				id := int(rand.ExpFloat64() * 10)
				_, _ = s.products.Get(ctx, min(id, 90)) // the page shows what fails
				select {
				case <-time.After(rand.N(4 * time.Millisecond)):
				case <-ctx.Done():
				}
			}
		})
	}
	s.callers.Go(func() { // owner: the shop; stop: leave; joined by close
		for ctx.Err() == nil {
			_, _ = s.products.Get(ctx, 77) // is slow
			site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://shop/products", nil))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	s.callers.Go(func() { // owner: the shop; stop: leave; joined by close
		for ctx.Err() == nil {
			_ = s.locks.Do(ctx, "nightly import", func(held context.Context, _ *mutex.Lease) error {
				<-held.Done() // it never ends by itself
				return nil
			})
		}
	})
}

func (s *shop) close() error {
	s.leave()
	s.callers.Wait()
	if s.guard != nil {
		_ = s.guard.Close() // always nil
	}
	if s.locks != nil {
		_ = s.locks.Close() // always nil
	}
	return errors.Join(s.rdb.Close(), s.server.Close())
}
