package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
)

// A fleet is the instances of a service. They share nothing but Redis and the database, as processes on as many machines
// would: each has its own client, and its own Guard if it uses one.
type fleet struct {
	clients []*redis.Client
	shops   []shop
}

func openFleet(server *backends.RedisServer, db *backends.ProductDB, open opener, prefix string, s settings, count *backends.Commands) (*fleet, error) {
	f := &fleet{}
	for range s.instances {
		client := server.NewCountedClient(count)
		f.clients = append(f.clients, client)
		instance, err := open(client, db, prefix, s.ttl)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.shops = append(f.shops, instance)
	}
	return f, nil
}

// warmUp has the entry stored, so that the run begins with a warm cache and every rebuild in it follows an expiry.
func (f *fleet) warmUp(ctx context.Context) error {
	_, err := f.shops[0].Product(ctx, hotProduct)
	return err
}

func (f *fleet) close() error {
	var errs []error
	for _, instance := range f.shops {
		errs = append(errs, instance.Close())
	}
	for _, client := range f.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
