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

func openFleet(server *backends.RedisServer, db *database, c contestant, prefix string, s settings, count *backends.Commands) (*fleet, error) {
	f := &fleet{}
	for range s.instances {
		client := server.NewCountedClient(count)
		f.clients = append(f.clients, client)
		instance, err := c.Open(client, db, prefix, s.ttl)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.shops = append(f.shops, instance)
	}
	return f, nil
}

// warmUp stores the entry, so that the run begins with a warm cache and every rebuild in it follows an expiry. It asks
// twice: the first call returns as soon as it has the product, the second when the product is in Redis.
func (f *fleet) warmUp(ctx context.Context) error {
	_, err := f.shops[0].Product(ctx, hotProduct)
	if err == nil {
		_, err = f.shops[0].Product(ctx, hotProduct)
	}
	return err
}

// closeShops returns when all that they have queried is stored.
func (f *fleet) closeShops() error {
	var errs []error
	for _, instance := range f.shops {
		errs = append(errs, instance.Close())
	}
	f.shops = nil
	return errors.Join(errs...)
}

func (f *fleet) close() error {
	errs := []error{f.closeShops()}
	for _, client := range f.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
