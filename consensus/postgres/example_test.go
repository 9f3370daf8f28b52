package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/consensus/postgres"
)

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, postgres.AddressOfExamples())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := postgres.CreateTable(ctx, pool); err != nil {
		log.Fatal(err)
	}
	locks, err := postgres.New(pool, postgres.Config{Prefix: "example", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *postgres.Lease) error {
		_, err := locks.TryLock(ctx, "invoice:7")
		fmt.Println("another one:", errors.Is(err, postgres.ErrNotAcquired))
		fmt.Println("a fence for what is written:", l.Fence() > 0)
		return ctx.Err() // ctx ends when the lease is lost
	})
	fmt.Println(err)
	// Output:
	// another one: true
	// a fence for what is written: true
	// <nil>
}
