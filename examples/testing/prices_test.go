package testing

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
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

// open returns the prices of a source where tea costs 3.
func open(t *testing.T, rdb *redis.Client, observers ...cacheguard.Observer) (*Prices, *memory) {
	t.Helper()
	source := &memory{}
	source.prices.Store("tea", 3)
	prices, err := New(rdb, source, observers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = prices.Close() }) // always nil
	return prices, source
}

// want fails the test if the price is another one.
func want(t *testing.T, prices *Prices, price int) {
	t.Helper()
	if got, err := prices.Get(t.Context(), "tea"); got != price || err != nil {
		t.Fatalf("Get = %d, %v; want %d", got, err, price)
	}
}

// Offer is what another Cache of this shop has.
type Offer struct {
	ID    string
	Teas  []string
	Until time.Time
}

func TestAnOfferComesBackFromTheCacheAsItWas(t *testing.T) {
	t.Parallel()
	cacheguardtest.Survives[Offer](t, nil) // an Offer with something in each field, and encoding/json
}

func TestManyCallersMakeOneQuery(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	prices, _ := open(t, env.Redis)

	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() { _, _ = prices.Get(t.Context(), "tea") })
	}
	callers.Wait()
	if n := env.Loads("tea"); n != 1 {
		t.Errorf("the source was asked %d times, want once", n)
	}
}

func TestAPriceThatWasSetIsSeenByTheNextGet(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	prices, _ := open(t, env.Redis)

	want(t, prices, 3)
	if err := prices.Set(t.Context(), "tea", 4); err != nil {
		t.Fatal(err)
	}
	want(t, prices, 4)
}

func TestAnOldPriceIsServedWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	prices, source := open(t, env.Redis)

	want(t, prices, 3)
	source.prices.Store("tea", 4) // by somebody who tells no one
	env.Advance(time.Minute)      // its TTL is over
	want(t, prices, 3)
	env.Settle() // waits for the load in the background
	want(t, prices, 4)

	source.prices.Store("tea", 5)
	env.Advance(time.Minute + time.Hour) // StaleFor is over as well
	want(t, prices, 5)
	if n := env.Loads("tea"); n != 3 {
		t.Errorf("the source was asked %d times, want three", n)
	}
}

func TestPricesAreLoadedWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	outcomes := make(chan cacheguard.Outcome, 2)
	gets := cacheguard.On(cacheguard.EventGet, func(_ context.Context, e cacheguard.Event) { outcomes <- e.Outcome })
	env := cacheguardtest.New(t, cacheguard.Config{})
	prices, _ := open(t, env.Redis, gets)

	env.Outage(true)
	want(t, prices, 3)
	env.Outage(false)
	want(t, prices, 3)
	if first, second := <-outcomes, <-outcomes; first != cacheguard.Bypassed || second != cacheguard.Loaded {
		t.Errorf("the price was %s and %s, want %s and %s", first, second, cacheguard.Bypassed, cacheguard.Loaded)
	}
}
