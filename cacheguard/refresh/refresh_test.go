package refresh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// shop is a service of two instances that refresh.
type shop struct {
	*testing.T

	prefix string

	name  atomic.Pointer[string] // of all products
	loads atomic.Int64
	errs  chan error
}

type instance struct {
	guard     *cacheguard.Guard
	products  *cacheguard.Cache[int, string]
	refresher *Refresher[int]
}

func newShop(t *testing.T) (s *shop, one, two *instance) {
	t.Helper()
	t.Parallel()
	s = &shop{T: t, prefix: rand.Text(), errs: make(chan error, 1000)}
	s.rename("one")
	return s, s.open(), s.open()
}

func (s *shop) rename(name string) { s.name.Store(&name) }

func (s *shop) load(context.Context, int) (string, error) {
	s.loads.Add(1)
	return *s.name.Load(), nil
}

func (s *shop) open() *instance {
	s.Helper()
	i := new(instance)
	var err error
	i.refresher, err = New(Config[int]{Kind: "product", OnError: func(err error) { s.errs <- err }})
	expect.ErrorIs(s, err)
	i.guard, err = cacheguard.New(shared.Client(s.T), cacheguard.Config{
		Prefix: s.prefix, TTL: time.Hour, RedisTimeout: redistest.Patience, HedgeAfter: -1, Observers: []cacheguard.Observer{i.refresher},
		Local: cacheguard.LocalConfig{MaxBytes: 1 << 20, TTL: time.Minute},
	})
	expect.ErrorIs(s, err)
	s.Cleanup(func() { _ = i.guard.Close() })
	i.products, err = cacheguard.NewCache(i.guard, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: s.load, Tags: func(int, string) []string { return []string{"all products"} },
	})
	expect.ErrorIs(s, err)
	ended, errEnd := make(chan error), errors.New("the end")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { ended <- i.refresher.Run(ctx, i.products) }()
	s.Cleanup(func() {
		cancel(errEnd)
		expect.ErrorIs(s, <-ended, errEnd)
	})
	return i
}

// asks asks for products 1 to 10, and so starts the subscription.
func (s *shop) asks(i *instance) {
	s.Helper()
	for k := range 10 {
		if got, err := i.products.Get(s.Context(), k+1); err != nil || got != *s.name.Load() {
			s.Fatal(got, err)
		}
	}
	redistest.Await(s, "the tier answers", func() bool {
		_, err := i.products.Get(s.Context(), 1)
		return err == nil && i.guard.Stats().LocalEntries > 0
	})
}

// has waits until the cache has products with a name that nobody asked for.
func (s *shop) has(i *instance, name string, ks ...int) {
	s.Helper()
	for _, k := range ks {
		redistest.Await(s, fmt.Sprint(k, " is loaded"), func() bool {
			got, _, err := i.products.Peek(s.Context(), k)
			return err == nil && got == name
		})
	}
}

func TestWhatIsInvalidatedAndWasAskedForIsLoadedOnceInTheFleet(t *testing.T) {
	wanted := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for name, c := range map[string]struct {
		write func(ctx context.Context, i *instance) error
		also  []int // that it invalidates, though nobody has asked for them
		keys  []int
	}{
		"keys":      {func(ctx context.Context, i *instance) error { return i.products.Invalidate(ctx, 1, 2, 11) }, []int{11}, []int{1, 2}},
		"a tag":     {func(ctx context.Context, i *instance) error { return i.guard.InvalidateTags(ctx, "all products") }, []int{11}, wanted},
		"the Cache": {func(ctx context.Context, i *instance) error { return i.products.InvalidateAll(ctx) }, []int{11}, wanted},
		"all":       {func(ctx context.Context, i *instance) error { return i.guard.InvalidateAll(ctx) }, []int{11}, wanted},
		"an Update": {func(ctx context.Context, i *instance) error {
			return i.products.Update(ctx, 3, func(context.Context) error { return nil })
		}, nil, []int{3}},
		"an Intend": {func(ctx context.Context, i *instance) error {
			intent, err := i.guard.Intend(ctx, i.products.Changes(4, 11))
			if err != nil {
				return err
			}
			return intent.Done(ctx)
		}, []int{11}, []int{4}},
	} {
		t.Run(name, func(t *testing.T) {
			s, one, two := newShop(t)
			s.asks(one)
			s.asks(two)
			for _, k := range c.also {
				_, err := two.products.Warm(t.Context(), slices.Values([]int{k}), cacheguard.WarmConfig{})
				expect.ErrorIs(t, err)
			}
			before := s.loads.Load()
			s.rename("two")
			expect.ErrorIs(t, c.write(t.Context(), one))
			s.has(one, "two", c.keys...)
			s.has(two, "two", c.keys...)
			for _, k := range c.also {
				if got, _, err := one.products.Peek(t.Context(), k); err == nil {
					t.Error("loaded, though nobody has asked for it:", k, got)
				}
			}
			redistest.Await(t, "who loads says so", func() bool { return one.refresher.Loaded()+two.refresher.Loaded() >= uint64(len(c.keys)) })
			if name != "an Intend" { // which says twice that it was invalidated, and a load in between is not stored
				expect.Equal(t, "loads in the fleet", s.loads.Load()-before, int64(len(c.keys)))
			}
		})
	}
}

func TestWhileAnIntentStandsNothingIsLoadedAgainAndAgain(t *testing.T) {
	s, one, two := newShop(t)
	s.asks(one)
	s.asks(two)
	intent, err := one.guard.Intend(t.Context(), one.products.Changes(1))
	expect.ErrorIs(t, err)
	before := s.loads.Load()
	for range 10 {
		one.refresher.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventInvalidated, Key: "product:1", Kind: "product"})
		_, err = two.products.Warm(t.Context(), slices.Values([]int{1}), cacheguard.WarmConfig{}) // as both instances do, now
		expect.ErrorIs(t, err)
	}
	s.rename("two")
	expect.ErrorIs(t, intent.Done(t.Context()))
	s.has(two, "two", 1)
	expect.Equal(t, "loads in the fleet", s.loads.Load()-before, 1)
}

func TestKeysThatCannotBeLoadedAreTold(t *testing.T) {
	s, one, _ := newShop(t)
	one.refresher.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventGet, Key: "product:lamp", Kind: "product"})
	one.refresher.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventGet, Key: "price:1", Kind: "price"})
	one.refresher.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventInvalidated, Key: "price:1", Kind: "price"})
	one.refresher.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventInvalidated, Key: "product:lamp", Kind: "product"})
	err := <-s.errs
	expect.ErrorIs(t, err, strconv.ErrSyntax)
	expect.Equal(t, "error", err.Error(), `refresh: Config.Parse of key "product:lamp": strconv.ParseInt: parsing "lamp": invalid syntax`)
	expect.Equal(t, "loads", s.loads.Load(), 0)
}

func TestRunEndsWithTheGuard(t *testing.T) {
	t.Parallel()
	r, err := New(Config[string]{Kind: "product"})
	expect.ErrorIs(t, err)
	g, err := cacheguard.New(shared.Client(t), cacheguard.Config{Prefix: rand.Text(), TTL: time.Hour, Observers: []cacheguard.Observer{r}})
	expect.ErrorIs(t, err)
	load := func(context.Context, string) (string, error) { return "", nil }
	prices, err := cacheguard.NewCache(g, cacheguard.CacheConfig[string, string]{Name: "price", Load: load})
	expect.ErrorIs(t, err)
	err = r.Run(t.Context(), prices)
	expect.Equal(t, "error", fmt.Sprint(err), `refresh: the Cache is "price", and Config.Kind is "product"`)
	products, err := cacheguard.NewCache(g, cacheguard.CacheConfig[string, string]{Name: "product", Load: load})
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, g.Close())
	r.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventGet, Key: "product:lamp", Kind: "product"})
	r.Observe(t.Context(), cacheguard.Event{What: cacheguard.EventForgotten})
	expect.ErrorIs(t, r.Run(t.Context(), products), cacheguard.ErrClosed)
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	type pair [2]int
	_, ofPair := New(Config[pair]{Kind: "k"})
	for want, c := range map[string]Config[int]{
		"refresh: Config.Kind is empty": {}, "refresh: Config.Lately: -1s is negative": {Kind: "k", Lately: -time.Second}, "refresh: Config.MaxKeys: -1 is negative": {Kind: "k", MaxKeys: -1},
	} {
		_, err := New(c)
		expect.Equal(t, "error", fmt.Sprint(err), want)
	}
	expect.Equal(t, "error", fmt.Sprint(ofPair), "refresh: Config.Parse is nil, and refresh.pair is neither an integer nor a string")
}

func TestTheDefaultOfParseIsTheInverseOfCacheConfigKey(t *testing.T) {
	t.Parallel()
	type id int8
	type sku string
	parses(t, "-128", id(-128))
	parses(t, "18446744073709551615", uint64(math.MaxUint64))
	parses(t, "a:b", sku("a:b"))
	if k, err := parser[id]()("128"); err == nil {
		t.Error(k)
	}
}

func parses[K comparable](t *testing.T, text string, want K) {
	t.Helper()
	g, err := cacheguard.New(shared.Client(t), cacheguard.Config{Prefix: rand.Text(), TTL: time.Hour})
	expect.ErrorIs(t, err)
	defer func() { _ = g.Close() }()
	c, err := cacheguard.NewCache(g, cacheguard.CacheConfig[K, string]{Name: "k", Load: func(context.Context, K) (string, error) { return "", nil }})
	expect.ErrorIs(t, err)
	expect.Equal(t, "key", c.Key(want), "k:"+text)
	got, err := parser[K]()(text)
	expect.ErrorIs(t, err)
	expect.Equal(t, "parsed", got, want)
}
