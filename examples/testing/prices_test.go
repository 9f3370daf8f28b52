package testing

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/cacheguard/go/cacheguard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Source that counts how often it is asked.
type memory struct {
	prices sync.Map
	reads  atomic.Int64
}

func (m *memory) Price(_ context.Context, id string) (int, error) {
	m.reads.Add(1)
	price, found := m.prices.Load(id)
	if !found {
		return 0, cacheguard.ErrNotFound
	}
	return price.(int), nil
}

func (m *memory) SavePrice(_ context.Context, id string, price int) error {
	m.prices.Store(id, price)
	return nil
}

// open returns prices on a Redis that lives in this process.
func open(t *testing.T, server *miniredis.Miniredis, source Source, hooks cacheguard.Hooks) *Prices {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), DialerRetries: 1})
	prices, err := New(rdb, source, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = prices.Close() // before the client
		_ = rdb.Close()    // nobody uses it any more
	})
	return prices
}

// want fails the test if the price is another one.
func want(t *testing.T, prices *Prices, price int) {
	t.Helper()
	if got, err := prices.Get(t.Context(), "tea"); got != price || err != nil {
		t.Fatalf("Get = %d, %v; want %d", got, err, price)
	}
}

func TestManyCallersMakeOneQuery(t *testing.T) {
	source := &memory{}
	source.prices.Store("tea", 3)
	prices := open(t, miniredis.RunT(t), source, cacheguard.Hooks{})

	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() { _, _ = prices.Get(t.Context(), "tea") })
	}
	callers.Wait()
	want(t, prices, 3)
	if n := source.reads.Load(); n != 1 {
		t.Errorf("the source was asked %d times, want once", n)
	}
}

func TestAPriceThatWasSetIsSeenByTheNextGet(t *testing.T) {
	source := &memory{}
	source.prices.Store("tea", 3)
	prices := open(t, miniredis.RunT(t), source, cacheguard.Hooks{})

	want(t, prices, 3)
	if err := prices.Set(t.Context(), "tea", 4); err != nil {
		t.Fatal(err)
	}
	want(t, prices, 4)
}

func TestAPriceThatHasExpiredIsLoadedAgain(t *testing.T) {
	source, server := &memory{}, miniredis.RunT(t)
	source.prices.Store("tea", 3)

	first := open(t, server, source, cacheguard.Hooks{})
	want(t, first, 3)
	_ = first.Close() // waits until the price is stored
	server.FastForward(2 * time.Minute)

	want(t, open(t, server, source, cacheguard.Hooks{}), 3)
	if n := source.reads.Load(); n != 2 {
		t.Errorf("the source was asked %d times, want twice", n)
	}
}

func TestPricesAreLoadedWithoutRedis(t *testing.T) {
	outcomes := make(chan cacheguard.Outcome, 1)
	hooks := cacheguard.Hooks{
		OnGet: func(_ context.Context, _ string, how cacheguard.Outcome, _ time.Duration, _ error) { outcomes <- how },
	}
	source := &memory{}
	source.prices.Store("tea", 3)
	server := miniredis.RunT(t)
	prices := open(t, server, source, hooks)

	server.Close()
	want(t, prices, 3)
	if how := <-outcomes; how != cacheguard.Bypassed {
		t.Errorf("the price was %s, want %s", how, cacheguard.Bypassed)
	}
}
