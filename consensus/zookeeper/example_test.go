package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cacheguard/go/consensus/zookeeper"
)

func Example() {
	ctx := context.Background()
	const session = 10 * time.Second
	conn, _, err := zk.Connect(zookeeper.ServersOfExamples(), session, zk.WithDialer(zookeeper.Dialer(session)), zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	locks, err := zookeeper.New(conn, zookeeper.Config{Prefix: "example", TTL: session})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *zookeeper.Lease) error {
		_, err := locks.TryLock(ctx, "invoice:7")
		fmt.Println("another one:", errors.Is(err, zookeeper.ErrNotAcquired))
		fmt.Println("a fence for what is written:", l.Fence() > 0)
		return ctx.Err() // ctx ends when the lease is lost
	})
	fmt.Println(err)
	// Output:
	// another one: true
	// a fence for what is written: true
	// <nil>
}
