package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/mutex"
)

// newClient connects to the redis-server of the tests.
func newClient() *redis.Client { return redis.NewClient(&redis.Options{Addr: mutex.SharedAddr()}) }

// invoices is a table that refuses what is older than what it has seen.
type invoices struct{ fence int64 }

func (t *invoices) send(_ context.Context, id int, fence int64) error {
	if fence < t.fence {
		return errors.New("somebody else has the lock by now")
	}
	t.fence = fence
	fmt.Println("sent", id)
	return nil
}

func ExampleLocker_Do() {
	ctx, rdb, table := context.Background(), newClient(), &invoices{}
	locks, err := mutex.New(rdb, mutex.Config{Prefix: "example", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *mutex.Lease) error {
		return table.send(ctx, 7, l.Fence()) // ctx ends when the lease is lost
	})
	fmt.Println(err)
	// Output:
	// sent 7
	// <nil>
}

func ExampleLocker_Lock() {
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-lock"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	wait, cancel := context.WithTimeout(context.Background(), time.Second) // how long to wait, not how long to hold
	defer cancel()
	lease, err := locks.Lock(wait, "report")
	if err != nil {
		log.Fatal(err) // errors.Is(err, mutex.ErrNotAcquired): others had it
	}
	fmt.Println(lease.Context().Err(), lease.Fence() > 0)
	fmt.Println(lease.Unlock(context.Background()))
	// Output:
	// <nil> true
	// <nil>
}

func ExampleLocker_TryLock() {
	ctx := context.Background()
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-try"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.TryLock(ctx, "cron")
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryLock(ctx, "cron")
	fmt.Println(errors.Is(err, mutex.ErrNotAcquired))
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// true
	// <nil>
}

func ExampleWithOwner() {
	ctx := mutex.WithOwner(context.Background())
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-owner"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "account", func(ctx context.Context, outer *mutex.Lease) error {
		return locks.Do(ctx, "account", func(_ context.Context, inner *mutex.Lease) error {
			fmt.Println(inner.Fence() == outer.Fence())
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

func ExampleLocker_LockMany() {
	ctx := context.Background()
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-many"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	both, err := locks.LockMany(ctx, "account:2", "account:1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(both.Each()), both.Unlock(ctx))
	// Output: 2 <nil>
}

func ExampleNewQuorum() {
	ctx := context.Background()
	servers := []mutex.Redis{newClient()} // five independent ones, in earnest
	locks, err := mutex.NewQuorum(servers, mutex.Config{Prefix: "example-quorum"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "leader", func(context.Context, *mutex.Lease) error {
		fmt.Println("a majority granted it")
		return nil
	})
	fmt.Println(err)
	// Output:
	// a majority granted it
	// <nil>
}

func ExampleLocker_Inspect() {
	ctx := context.Background()
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-inspect", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Lock(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	info, err := locks.Inspect(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Token == lease.Token(), info.Left <= 10*time.Second, info.Waiters)
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// true true 0
	// <nil>
}

func ExampleLocker_Revoke() {
	ctx := context.Background()
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-revoke"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Lock(ctx, "import")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(locks.Revoke(ctx, "import"))
	<-lease.Context().Done() // its holder hears of it
	fmt.Println(errors.Is(context.Cause(lease.Context()), mutex.ErrRevoked))
	// Output:
	// true <nil>
	// true
}

func ExampleLocker_Once() {
	ctx := context.Background()
	locks, err := mutex.New(newClient(), mutex.Config{Prefix: "example-once"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	for range 3 { // the schedulers of three instances
		ran, err := locks.Once(ctx, "nightly", time.Hour, func(context.Context, *mutex.Lease) error {
			fmt.Println("the report is written")
			return nil
		})
		fmt.Println(ran, err)
	}
	// Output:
	// the report is written
	// true <nil>
	// false <nil>
	// false <nil>
}
