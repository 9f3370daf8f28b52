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
)

// shop is a service with callers.
type shop struct {
	server   *backends.RedisServer
	rdb      *redis.Client
	guard    *cacheguard.Guard
	products *cacheguard.Cache[int, product]
	next     *cacheguard.Guard // of an instance that has the next version of the program already
	jobs     *jobs
	pages    *middleware.Cache
	callers  sync.WaitGroup
	leave    context.CancelFunc
}

type product struct {
	ID    int
	Name  string
	Cents int
}

// load is a query. Some are slow.
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
	var errs [5]error
	s.guard, errs[0] = cacheguard.New(s.rdb, cacheguard.Config{
		Prefix: "shop", TTL: 3 * time.Second, MaxLoads: 16, Local: cacheguard.LocalConfig{MaxEntries: 20, TTL: time.Second, HotKeys: 5},
		RedisTimeout: backends.Patience,
	})
	s.products, errs[1] = cacheguard.NewCache(s.guard, cacheguard.CacheConfig[int, product]{
		Name: "product", Load: load,
		Tags: func(id int, _ product) []string { return []string{fmt.Sprint("shelf:", id%5)} },
	})
	s.jobs, errs[2] = openJobs(s.rdb)
	s.next, errs[4] = cacheguard.New(s.rdb, cacheguard.Config{Prefix: "shop", Instance: "shop-next", TTL: time.Minute, RedisTimeout: backends.Patience})
	if s.guard != nil {
		s.pages, errs[3] = middleware.New(s.guard, middleware.Config{})
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, s.call(ctx)
}

// call has the shop called until it is closed.
func (s *shop) call(ctx context.Context) error {
	ctx, s.leave = context.WithCancel(ctx)
	deployed, err := cacheguard.NewCache(s.next, cacheguard.CacheConfig[int, product]{Name: "product", Version: 2, Load: load})
	if err != nil {
		return errors.Join(err, s.close())
	}
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
			_, _ = deployed.Get(ctx, 1)
			site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://shop/products", nil))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	s.jobs.run(ctx, &s.callers)
	return nil
}

func (s *shop) close() error {
	s.leave()
	s.callers.Wait()
	for _, guard := range []*cacheguard.Guard{s.guard, s.next} {
		_ = guard.Close() // always nil
	}
	var err error
	if s.jobs != nil {
		err = s.jobs.close()
	}
	return errors.Join(err, s.rdb.Close(), s.server.Close())
}
