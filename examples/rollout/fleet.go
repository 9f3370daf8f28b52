package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/rollout"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/semaphore"
)

// settingsOf are the settings of a fleet.
type settingsOf struct {
	prefix  string // empty: one of its own
	version int
}

func newPrefix() string { return "rollout-" + rand.Text() }

// fleet is the instances of a service.
type fleet struct {
	settingsOf
	shop      *shop
	shares    rollout.Shares // each instance of a real fleet has one, and hears of its settings
	instances []*instance
}

type instance struct {
	redis  *redis.Client
	loads  *semaphore.Limiter
	guard  *cacheguard.Guard
	prices *cacheguard.Cache[int, int64]
	older  older
	hits   atomic.Int64
}

func openFleet(server *backends.RedisServer, shop *shop, s settingsOf) (*fleet, error) {
	if s.prefix == "" {
		s.prefix = newPrefix()
	}
	f := &fleet{settingsOf: s, shop: shop}
	f.turn(100)
	for range instances {
		i := &instance{redis: server.NewClient()}
		i.older = older{i.redis, s.prefix + "-older", shop}
		f.instances = append(f.instances, i)
		if err := i.open(shop, s, f.shares.Gate); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

func (i *instance) open(shop *shop, s settingsOf, gate func(context.Context, string) error) (err error) {
	i.loads, err = semaphore.NewLimiter(i.redis, "price-db", semaphore.Config{Prefix: s.prefix, Permits: fleetLoads, RedisTimeout: backends.Patience})
	if err != nil {
		return err
	}
	i.guard, err = cacheguard.New(i.redis, cacheguard.Config{
		Prefix: s.prefix, TTL: time.Hour, Limiter: i.loads, Gate: gate, RedisTimeout: backends.Patience,
		Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventGet, func(_ context.Context, e cacheguard.Event) {
			if e.Outcome == cacheguard.Hit {
				i.hits.Add(1)
			}
		})},
	})
	if err != nil {
		return err
	}
	i.prices, err = cacheguard.NewCache(i.guard, cacheguard.CacheConfig[int, int64]{Name: "price", Version: s.version, Load: shop.price})
	return err
}

func (f *fleet) close() (err error) {
	for _, i := range f.instances {
		err = errors.Join(err, i.guard.Close(), i.loads.Close(), i.redis.Close())
	}
	return err
}

// turn sets for which percentage of the keys the Guard is asked. The others are the older cache's.
func (f *fleet) turn(percent float64) { f.shares.Set(map[string]float64{"price": percent}) }

// get asks the Guard or the older cache.
func (f *fleet) get(ctx context.Context, i *instance, product int) (price int64, old bool, err error) {
	if f.shares.Gate(ctx, i.prices.Key(product)) != nil {
		price, err = i.older.price(ctx, product)
		return price, true, err
	}
	price, err = i.prices.Get(ctx, product)
	return price, false, err
}

// compare compares what the Guard would answer with the database and with the older cache, until it is done.
func (f *fleet) compare(ctx context.Context, done <-chan struct{}) rollout.Seen {
	i := f.instances[0]
	c := rollout.Comparer[int, int64]{
		Cache: i.prices, Source: f.shop.price, Equal: func(a, b int64) bool { return a == b }, Pause: 20 * time.Millisecond,
	}
	for n := 0; ; n++ {
		select {
		case <-done:
			return c.Seen()
		default:
		}
		product := n % (len(f.shop.prices) / 10) // the writer changes these
		if price, err := i.older.price(ctx, product); err == nil {
			c.Compare(ctx, product, &price)
		}
	}
}

// change writes, and tells both caches.
func (i *instance) change(ctx context.Context, product int, write func(context.Context) error) error {
	return i.prices.Update(ctx, product, func(ctx context.Context) error {
		err := write(ctx)
		return errors.Join(err, i.older.forget(ctx, product)) // in any case: the write may have been made
	})
}

// warm has every instance load what the version before has in Redis.
func (f *fleet) warm(ctx context.Context, before int) error {
	first, last := f.prefix+":{price:", "}:v"+strconv.Itoa(before)
	var ids []int
	keys := f.instances[0].redis.Scan(ctx, 0, first+"*"+last, 1000).Iterator()
	for keys.Next(ctx) {
		id, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(keys.Val(), first), last))
		if err != nil {
			return fmt.Errorf("the key %q: %w", keys.Val(), err)
		}
		ids = append(ids, id)
	}
	if err := keys.Err(); err != nil {
		return err
	}
	errs := make([]error, len(f.instances))
	var all sync.WaitGroup
	for n, i := range f.instances {
		all.Go(func() { _, errs[n] = i.prices.Warm(ctx, slices.Values(ids), cacheguard.WarmConfig{}) }) // owner: warm
	}
	all.Wait()
	return errors.Join(errs...)
}

// result is what the readers saw.
type result struct {
	took       []time.Duration
	hits, old  int
	ofTheOlder int // old values, too, but of the older cache
}

// underLoad has readers read for a while, and a writer change prices.
func (f *fleet) underLoad(ctx context.Context, long time.Duration) (r result, err error) {
	end := time.Now().Add(long)
	done := make(chan struct{})
	var writer sync.WaitGroup
	var failed error
	writer.Go(func() { failed = f.write(ctx, done) }) // owner: underLoad
	r, err = f.readAll(ctx, func(int) bool { return time.Now().Before(end) })
	close(done)
	writer.Wait()
	return r, errors.Join(err, failed)
}

// readAll has all readers read; more is asked by each of them whether it goes on after so many reads.
func (f *fleet) readAll(ctx context.Context, more func(reads int) bool) (r result, err error) {
	before := f.hits()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, i := range f.instances {
		for range readers {
			all.Go(func() { // owner: readAll
				one, failed := f.read(ctx, i, more)
				mu.Lock()
				defer mu.Unlock()
				r.took, r.old, r.ofTheOlder, err = append(r.took, one.took...), r.old+one.old, r.ofTheOlder+one.ofTheOlder, errors.Join(err, failed)
			})
		}
	}
	all.Wait()
	r.hits = f.hits() - before
	return r, err
}

func (f *fleet) hits() (n int) {
	for _, i := range f.instances {
		n += int(i.hits.Load())
	}
	return n
}

// read reads prices, some much more often than others.
func (f *fleet) read(ctx context.Context, i *instance, more func(reads int) bool) (r result, err error) {
	popular := mathrand.NewZipf(mathrand.New(mathrand.NewPCG(mathrand.Uint64(), 1)), 1.1, 5, uint64(len(f.shop.prices)-1))
	for more(len(r.took)) && ctx.Err() == nil {
		product := int(popular.Uint64())
		least, began := f.shop.replaced[product].Load(), time.Now()
		price, older, err := f.get(ctx, i, product)
		if err != nil {
			return r, err
		}
		r.took = append(r.took, time.Since(began))
		switch {
		case price >= least:
		case older:
			r.ofTheOlder++
		default:
			r.old++
		}
	}
	return r, context.Cause(ctx)
}

// write changes prices until it is done.
func (f *fleet) write(ctx context.Context, done <-chan struct{}) error {
	for n := 0; ; n++ {
		select {
		case <-done:
			return nil
		default:
		}
		i := f.instances[n%len(f.instances)]
		if err := f.shop.change(ctx, n%len(f.shop.prices)/10, i.change); err != nil {
			return err
		}
		if !program.Pause(ctx, 2*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}
