package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// queries is a slog.Handler that counts the queries.
type queries struct {
	slog.Handler
	count atomic.Int64
	begun func(context.Context) // if set, before each
}

func (q *queries) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "query" {
		q.count.Add(1)
		if q.begun != nil {
			q.begun(ctx)
		}
	}
	return nil
}

// openProducts opens a database for one test.
func openProducts(t *testing.T) (*store, *queries) {
	t.Helper()
	db, err := sqldb.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.Equal(t, "closing the database", db.Close(), nil) })
	counted := &queries{Handler: slog.NewTextHandler(io.Discard, nil)}
	s, err := openStore(t.Context(), db, 0, slog.New(counted))
	if err != nil {
		t.Fatal(err)
	}
	return s, counted
}

// instance is a process of the service, which the test asks without a network.
type instance struct {
	*testing.T
	*service
}

func start(t *testing.T, s *store, rdb *redis.Client) instance {
	t.Helper()
	service, err := newService(s, rdb, "shop", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.Equal(t, "closing the service", service.Close(), nil) })
	return instance{t, service}
}

// do makes a request.
func (i instance) do(method, path, body string) (status int, answer string) {
	i.Helper()
	w := httptest.NewRecorder()
	i.handler.ServeHTTP(w, httptest.NewRequestWithContext(i.Context(), method, path, strings.NewReader(body)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// write makes a request that must be answered with that status.
func (i instance) write(status int, method, path, body string) {
	i.Helper()
	got, answer := i.do(method, path, body)
	expect.Equal(i, method+" "+path+": "+answer, got, status)
}

// get reads what is there.
func get[V any](i instance, path string) (v V) {
	i.Helper()
	status, answer := i.do(http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(answer), &v); status != http.StatusOK || err != nil {
		i.Fatalf("GET %s: %d, %s", path, status, answer)
	}
	return v
}

func (i instance) cents(id int) int {
	i.Helper()
	return get[Product](i, fmt.Sprint("/products/", id)).Cents
}

// shows reports whether a list or a search has the product.
func (i instance) shows(path string, id int64) bool {
	i.Helper()
	for _, p := range get[[]Product](i, path) {
		if p.ID == id {
			return true
		}
	}
	return false
}

func TestManyReadersMakeOneQuery(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	here, there := start(t, s, env.Redis), start(t, s, env.Redis)

	var readers sync.WaitGroup
	for i := range 100 {
		readers.Go(func() { []instance{here, there}[i%2].do(http.MethodGet, "/products/42", "") })
	}
	readers.Wait()
	expect.Equal(t, "loads", env.Loads("product:42"), 1)
}

func TestANewPriceIsAHitOnEveryInstance(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, asked := openProducts(t)
	here, there := start(t, s, env.Redis), start(t, s, env.Redis)

	expect.Equal(t, "the old price", there.cents(42) > 1, true)
	here.write(http.StatusNoContent, http.MethodPut, "/products/42/price?cents=1", "")
	before := asked.count.Load()
	expect.Equal(t, "the new price here", here.cents(42), 1)
	expect.Equal(t, "the new price there", there.cents(42), 1)
	expect.Equal(t, "queries after the write", asked.count.Load()-before, 0)
}

func TestACartAsksOnceForAllThatIsMissing(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, asked := openProducts(t)
	i := start(t, s, env.Redis)
	cents := i.cents(1)

	before := asked.count.Load()
	type cart struct {
		Products []Product
		Cents    int
	}
	full := get[cart](i, "/cart?ids=1,2,3,4242")
	expect.Equal(t, "products", len(full.Products), 3)
	expect.Equal(t, "the sum", full.Cents, cents+i.cents(2)+i.cents(3))
	expect.Equal(t, "queries", asked.count.Load()-before, 1)
	get[cart](i, "/cart?ids=3,2,1,4242")
	expect.Equal(t, "queries, also for what there is not", asked.count.Load()-before, 1)
}

func TestAnOldProductIsServedWhileItIsLoadedAgain(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	i := start(t, s, env.Redis)

	before := i.cents(42)
	if _, err := s.SetPrice(t.Context(), 42, 1); err != nil { // by somebody who does not know of the cache
		t.Fatal(err)
	}
	env.Advance(10 * time.Minute)
	expect.Equal(t, "the price, past its TTL", i.cents(42), before)
	env.Settle() // the load in the background has ended
	expect.Equal(t, "the price after that", i.cents(42), 1)
	expect.Equal(t, "loads", env.Loads("product:42"), 2)
}

func TestAbsenceIsRememberedForAMinute(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	i := start(t, s, env.Redis)

	for range 3 {
		i.write(http.StatusNotFound, http.MethodGet, "/products/4242", "")
	}
	expect.Equal(t, "loads", env.Loads("product:4242"), 1)
	env.Advance(time.Minute)
	i.write(http.StatusNotFound, http.MethodGet, "/products/4242", "")
	expect.Equal(t, "loads after a minute", env.Loads("product:4242"), 2)
}

func TestAMoveChangesBothLists(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	here, there := start(t, s, env.Redis), start(t, s, env.Redis)

	expect.Equal(t, "it is a sandal", there.shows("/categories/sandals", 42), true)
	expect.Equal(t, "it is a boot", there.shows("/categories/boots", 42), false)
	here.write(http.StatusOK, http.MethodPut, "/products/42", `{"name": "Blue boot", "category": "boots", "cents": 1}`)
	expect.Equal(t, "it is still a sandal", there.shows("/categories/sandals", 42), false)
	expect.Equal(t, "it is a boot", there.shows("/categories/boots", 42), true)
}

func TestANewProductIsThereThoughItsAbsenceWasRemembered(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	here, there := start(t, s, env.Redis), start(t, s, env.Redis)

	there.write(http.StatusNotFound, http.MethodGet, "/products/101", "")
	there.write(http.StatusNotFound, http.MethodGet, "/categories/hats", "")
	here.write(http.StatusOK, http.MethodPut, "/products/101", `{"name": "Hat", "category": "hats", "cents": 1}`)
	expect.Equal(t, "its price", there.cents(101), 1)
	expect.Equal(t, "it is listed", there.shows("/categories/hats", 101), true)
}

func TestADiscountReachesEveryProductOfTheCategory(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	here, there := start(t, s, env.Redis), start(t, s, env.Redis)

	before := get[[]Product](there, "/categories/boots")
	shoe := there.cents(1)
	env.Settle() // all is stored
	here.write(http.StatusNoContent, http.MethodPost, "/categories/boots/discount?percent=50", "")
	for i, p := range get[[]Product](there, "/categories/boots") {
		expect.Equal(t, p.Name, p.Cents, before[i].Cents*50/100)
	}
	expect.Equal(t, "the price of a shoe", there.cents(1), shoe)
	expect.Equal(t, "loads of the shoe", env.Loads("product:1"), 1)
}

func TestADeletedProductLeavesListsAndSearches(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	here, there := start(t, s, env.Redis), start(t, s, env.Redis)

	expect.Equal(t, "it is found", there.shows("/search?q=Red++boot", 20), true)
	expect.Equal(t, "it is listed", there.shows("/categories/boots", 20), true)
	env.Settle() // all is stored
	expect.Equal(t, "it is found once more", there.shows("/search?q=red+BOOT", 20), true)
	expect.Equal(t, "searches that ran", env.Loads("search:red boot"), 1)
	here.write(http.StatusNoContent, http.MethodDelete, "/products/20", "")
	there.write(http.StatusNotFound, http.MethodGet, "/products/20", "")
	expect.Equal(t, "it is still found", there.shows("/search?q=red+boot", 20), false)
	expect.Equal(t, "it is still listed", there.shows("/categories/boots", 20), false)
	expect.Equal(t, "searches that ran, as the tag of the product has reached the first", env.Loads("search:red boot"), 2)
	here.write(http.StatusNotFound, http.MethodDelete, "/products/20", "")
}

func TestReadsGoOnWhileRedisIsDownAndWritesDoNot(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	i := start(t, s, env.Redis)

	env.Outage(true)
	before := i.cents(42)
	i.write(http.StatusServiceUnavailable, http.MethodPut, "/products/42/price?cents=1", "")
	expect.Equal(t, "the price", i.cents(42), before)
	i.write(http.StatusOK, http.MethodGet, "/health", "")
	env.Outage(false)
	i.write(http.StatusNoContent, http.MethodPut, "/products/42/price?cents=1", "")
	expect.Equal(t, "the price", i.cents(42), 1)
}

// While somebody doubts the cache, the service works as it does with it.
func TestTheServiceWorksPastTheCache(t *testing.T) {
	t.Parallel()
	s, _ := openProducts(t)
	i := start(t, s, cacheguardtest.New(t, cacheguard.Config{}).Redis)
	i.catalogue.guard.Bypass(true)

	i.write(http.StatusNoContent, http.MethodPut, "/products/42/price?cents=1", "")
	expect.Equal(t, "the price", i.cents(42), 1)
	i.write(http.StatusOK, http.MethodPut, "/products/42", `{"name": "Blue boot", "category": "boots", "cents": 2}`)
	expect.Equal(t, "it is a boot", i.shows("/categories/boots", 42), true)
	i.write(http.StatusNoContent, http.MethodPost, "/categories/boots/discount?percent=50", "")
	expect.Equal(t, "the price", i.cents(42), 1)
	i.write(http.StatusNoContent, http.MethodDelete, "/products/42", "")
	i.write(http.StatusNotFound, http.MethodGet, "/products/42", "")
}
