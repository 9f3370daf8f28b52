package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/cacheguard/go/consensus/mysql"
)

func Example() {
	ctx := context.Background()
	db, err := sql.Open("mysql", mysql.AddressOfExamples())
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := mysql.CreateTable(ctx, db); err != nil {
		log.Fatal(err)
	}
	locks, err := mysql.New(db, mysql.Config{Prefix: "example", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *mysql.Lease) error {
		_, err := locks.TryLock(ctx, "invoice:7")
		fmt.Println("another one:", errors.Is(err, mysql.ErrNotAcquired))
		fmt.Println("a fence for what is written:", l.Fence() > 0)
		return ctx.Err() // ctx ends when the lease is lost
	})
	fmt.Println(err)
	// Output:
	// another one: true
	// a fence for what is written: true
	// <nil>
}
