package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/semaphore"
)

// newPermits connects to the redis-server of the tests.
func newPermits(prefix string, n int) *semaphore.Locker {
	rdb := redis.NewClient(&redis.Options{Addr: semaphore.SharedAddr()})
	permits, err := semaphore.New(rdb, semaphore.Config{Prefix: prefix, Permits: n, TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	return permits
}

func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: semaphore.SharedAddr()})
	defer rdb.Close()
	reports, err := semaphore.New(rdb, semaphore.Config{Prefix: "example", Permits: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer reports.Close()

	var running atomic.Int64
	var callers sync.WaitGroup
	for range 20 { // on whatever instances they are
		callers.Go(func() {
			err := reports.Do(context.Background(), "reports", func(context.Context, *semaphore.Lease) error {
				if running.Add(1) > 3 {
					log.Fatal("more than three at a time")
				}
				defer running.Add(-1)
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
		})
	}
	callers.Wait()
	fmt.Println("20 reports, never more than 3 at a time")
	// Output: 20 reports, never more than 3 at a time
}

func ExampleLocker_TryLock() {
	ctx, permits := context.Background(), newPermits("example-try", 2)
	defer permits.Close()

	for range 3 {
		_, err := permits.TryLock(ctx, "exports")
		fmt.Println(errors.Is(err, semaphore.ErrNotAcquired))
	}
	// Output:
	// false
	// false
	// true
}

func ExampleLocker_Inspect() {
	ctx, permits := context.Background(), newPermits("example-inspect", 2)
	defer permits.Close()

	lease, err := permits.Lock(ctx, "exports")
	if err != nil {
		log.Fatal(err)
	}
	info, err := permits.Inspect(ctx, "exports")
	fmt.Println(len(info.Holders), info.Holders[0].Token == lease.Token(), info.Waiters, err)
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// 1 true 0 <nil>
	// <nil>
}
