package comingfrom_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// shared is the server of all examples.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newClient() *redis.Client { return redis.NewClient(&redis.Options{Addr: shared.Addr()}) }

// Product is what the examples cache.
type Product struct {
	ID    int
	Price int
}

// database stands for the source of the products.
type database struct {
	mu       sync.Mutex
	products map[int]Product
}

func newDatabase() *database { return &database{products: map[int]Product{42: {42, 1999}}} }

func (d *database) Product(_ context.Context, id int) (Product, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.products[id], nil
}

func (d *database) SetPrice(_ context.Context, id, price int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.products[id] = Product{id, price}
	return nil
}
