package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/rwlock"
)

// newLocks connects to the redis-server of the tests.
func newLocks(prefix string) *rwlock.Locker {
	rdb := redis.NewClient(&redis.Options{Addr: rwlock.SharedAddr()})
	locks, err := rwlock.New(rdb, rwlock.Config{Prefix: prefix, TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	return locks
}

func ExampleLocker_Do() {
	locks := newLocks("example-do")
	defer locks.Close()

	err := locks.Do(context.Background(), "prices", func(ctx context.Context, l *rwlock.Lease) error {
		fence, _ := rwlock.FenceFrom(ctx) // for code that is only given the context
		fmt.Println("alone:", l.Writes(), fence == l.Fence())
		return nil
	})
	fmt.Println(err)
	// Output:
	// alone: true true
	// <nil>
}

func ExampleLocker_RDo() {
	locks := newLocks("example-rdo")
	defer locks.Close()

	err := locks.RDo(context.Background(), "prices", func(ctx context.Context, l *rwlock.Lease) error {
		fmt.Println("beside other readers:", !l.Writes())
		return nil
	})
	fmt.Println(err)
	// Output:
	// beside other readers: true
	// <nil>
}

func ExampleLocker_RLock() {
	locks := newLocks("example-rlock")
	defer locks.Close()

	wait, cancel := context.WithTimeout(context.Background(), time.Second) // how long to wait, not how long to hold
	defer cancel()
	lease, err := locks.RLock(wait, "prices")
	if err != nil {
		log.Fatal(err) // errors.Is(err, rwlock.ErrNotAcquired): a writer had it all the time
	}
	_, err = locks.TryLock(context.Background(), "prices")
	fmt.Println("a writer is kept out:", errors.Is(err, rwlock.ErrNotAcquired))
	fmt.Println(lease.Unlock(context.Background()))
	// Output:
	// a writer is kept out: true
	// <nil>
}

func ExampleLocker_Inspect() {
	ctx, locks := context.Background(), newLocks("example-inspect")
	defer locks.Close()

	lease, err := locks.RLock(ctx, "prices")
	if err != nil {
		log.Fatal(err)
	}
	info, err := locks.Inspect(ctx, "prices")
	fmt.Println(info.Readers, info.WaitingWriters, err)
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// 1 0 <nil>
	// <nil>
}
