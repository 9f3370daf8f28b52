package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/rwlock"
)

func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: rwlock.SharedAddr()})
	defer rdb.Close()
	locks, err := rwlock.New(rdb, rwlock.Config{Prefix: "example"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	prices := map[string]int{}
	err = locks.Do(ctx, "prices", func(_ context.Context, l *rwlock.Lease) error {
		prices["tea"] = 3 // a database would be given l.Fence(), and refuse an older one
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	err = locks.RDo(ctx, "prices", func(context.Context, *rwlock.Lease) error {
		fmt.Println("tea costs", prices["tea"])
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: tea costs 3
}

// A writer that has written goes on as a reader, so that nobody writes before it has looked at the result.
func ExampleLease_Downgrade() {
	rdb := redis.NewClient(&redis.Options{Addr: rwlock.SharedAddr()})
	defer rdb.Close()
	locks, err := rwlock.New(rdb, rwlock.Config{Prefix: "example-downgrade"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	lease, err := locks.Lock(ctx, "report")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lease.Unlock(ctx) }() // or it ends with its lease
	if err := lease.Downgrade(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryLock(ctx, "report")
	fmt.Println("another writer is kept out:", errors.Is(err, rwlock.ErrNotAcquired))
	other, err := locks.TryRLock(ctx, "report")
	fmt.Println("another reader:", err)
	fmt.Println("upgrade beside it is refused:", errors.Is(lease.TryUpgrade(ctx), rwlock.ErrNotAcquired))
	_ = other.Unlock(ctx) // or it ends with its lease
	fmt.Println("upgrade:", lease.TryUpgrade(ctx))
	// Output:
	// another writer is kept out: true
	// another reader: <nil>
	// upgrade beside it is refused: true
	// upgrade: <nil>
}
