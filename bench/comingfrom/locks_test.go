package comingfrom_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// send stands for the work under a lock.
func send(ctx context.Context, invoice int) error { return ctx.Err() }

func Example_mutex() {
	ctx, rdb := context.Background(), newClient()
	defer rdb.Close()

	locks, err := mutex.New(rdb, mutex.Config{Prefix: "lock", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	wait, cancel := context.WithTimeout(ctx, 5*time.Second) // how long to wait for the lock
	defer cancel()
	lease, err := locks.Lock(wait, "invoice:7")
	if err != nil {
		log.Fatal(err) // errors.Is(err, mutex.ErrNotAcquired): somebody else has it
	}
	err = send(lease.Context(), 7) // the lease is renewed; its context ends if it is lost
	fmt.Println(err)
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// <nil>
	// <nil>
}

func Example_redislock() {
	ctx, rdb := context.Background(), newClient()
	defer rdb.Close()

	locks := redislock.New(rdb)

	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lock, err := locks.Obtain(wait, "redislock:invoice:7", 10*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		log.Fatal(err) // context.DeadlineExceeded: somebody else has it; without a RetryStrategy redislock.ErrNotObtained
	}
	err = send(ctx, 7) // has to call lock.Refresh if it takes longer than the TTL
	fmt.Println(err)
	fmt.Println(lock.Release(ctx))
	// Output:
	// <nil>
	// <nil>
}

func Example_redsync() {
	ctx, rdb := context.Background(), newClient()
	defer rdb.Close()

	locks := redsync.New(goredis.NewPool(rdb))

	lock := locks.NewMutex("redsync:invoice:7", redsync.WithExpiry(10*time.Second))
	if err := lock.LockContext(ctx); err != nil {
		log.Fatal(err) // after 32 tries: a *redsync.ErrTaken says that somebody else has it
	}
	err := send(ctx, 7) // has to call lock.ExtendContext if it takes longer than the expiry
	fmt.Println(err)
	ok, err := lock.UnlockContext(ctx)
	fmt.Println(ok, err)
	// Output:
	// <nil>
	// true <nil>
}

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
