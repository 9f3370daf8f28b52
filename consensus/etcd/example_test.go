package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/cacheguard/go/consensus/etcd"
)

func Example() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            etcd.EndpointsOfExamples(), // all members
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	locks, err := etcd.New(client, etcd.Config{Prefix: "example", TTL: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice:7", func(ctx context.Context, l *etcd.Lease) error {
		_, err := locks.TryLock(ctx, "invoice:7")
		fmt.Println("another one:", errors.Is(err, etcd.ErrNotAcquired))
		fmt.Println("a fence for what is written:", l.Fence() > 0)
		return ctx.Err() // ctx ends when the lease is lost
	})
	fmt.Println(err)
	// Output:
	// another one: true
	// a fence for what is written: true
	// <nil>
}
