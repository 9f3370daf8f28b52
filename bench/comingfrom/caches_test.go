// Package comingfrom_test has the code of docs/coming-from.md: what other libraries ask for, and the same with this one.
package comingfrom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/dtm-labs/rockscache"
	gocache "github.com/eko/gocache/lib/v4/cache"
	"github.com/eko/gocache/lib/v4/store"
	redisstore "github.com/eko/gocache/store/redis/v4"
	rediscache "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/cacheguard/go/cacheguard"
)

func Example_cacheguard() {
	ctx, rdb, db := context.Background(), newClient(), newDatabase()
	defer rdb.Close()

	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	p, err := cacheguard.Get(ctx, guard, "product:42", func(ctx context.Context) (Product, error) {
		return db.Product(ctx, 42)
	})
	fmt.Println(p.Price, err)

	err = guard.Update(ctx, "product:42", func(ctx context.Context) error {
		return db.SetPrice(ctx, 42, 1499)
	})
	fmt.Println(err)
	// Output:
	// 1999 <nil>
	// <nil>
}

func Example_goRedisCache() {
	ctx, rdb, db := context.Background(), newClient(), newDatabase()
	defer rdb.Close()

	products := rediscache.New(&rediscache.Options{Redis: rdb})

	var p Product
	err := products.Once(&rediscache.Item{
		Ctx: ctx, Key: "go-redis-cache:product:42", Value: &p, TTL: time.Hour,
		Do: func(*rediscache.Item) (any, error) { return db.Product(ctx, 42) },
	})
	fmt.Println(p.Price, err)

	if err := db.SetPrice(ctx, 42, 1499); err != nil {
		log.Fatal(err)
	}
	err = products.Delete(ctx, "go-redis-cache:product:42")
	fmt.Println(err)
	// Output:
	// 1999 <nil>
	// <nil>
}

func Example_rockscache() {
	ctx, rdb, db := context.Background(), newClient(), newDatabase()
	defer rdb.Close()

	products := rockscache.NewClient(rdb, rockscache.NewDefaultOptions())

	text, err := products.Fetch2(ctx, "rockscache:product:42", time.Hour, func() (string, error) {
		p, err := db.Product(ctx, 42)
		if err != nil {
			return "", err
		}
		encoded, err := json.Marshal(p)
		return string(encoded), err
	})
	if err != nil {
		log.Fatal(err)
	}
	var p Product
	err = json.Unmarshal([]byte(text), &p)
	fmt.Println(p.Price, err)

	if err := db.SetPrice(ctx, 42, 1499); err != nil {
		log.Fatal(err)
	}
	err = products.TagAsDeleted2(ctx, "rockscache:product:42")
	fmt.Println(err)
	// Output:
	// 1999 <nil>
	// <nil>
}

func Example_gocache() {
	ctx, rdb, db := context.Background(), newClient(), newDatabase()
	defer rdb.Close()

	load := func(ctx context.Context, _ any) (string, []store.Option, error) {
		p, err := db.Product(ctx, 42)
		if err != nil {
			return "", nil, err
		}
		encoded, err := json.Marshal(p)
		return string(encoded), []store.Option{store.WithExpiration(time.Hour)}, err
	}
	products := gocache.NewLoadable(load, gocache.New[string](redisstore.NewRedis(rdb)))
	defer products.Close()

	text, err := products.Get(ctx, "gocache:product:42")
	if err != nil {
		log.Fatal(err)
	}
	var p Product
	err = json.Unmarshal([]byte(text), &p)
	fmt.Println(p.Price, err)

	if err := db.SetPrice(ctx, 42, 1499); err != nil {
		log.Fatal(err)
	}
	err = products.Delete(ctx, "gocache:product:42")
	fmt.Println(err)
	// Output:
	// 1999 <nil>
	// <nil>
}

func Example_singleflight() {
	ctx, rdb, db := context.Background(), newClient(), newDatabase()
	defer rdb.Close()

	var group singleflight.Group
	got, err, _ := group.Do("product:42", func() (any, error) {
		var p Product
		cached, err := rdb.Get(ctx, "singleflight:product:42").Bytes()
		if err == nil {
			err = json.Unmarshal(cached, &p)
			return p, err
		}
		if !errors.Is(err, redis.Nil) {
			return p, err
		}
		if p, err = db.Product(ctx, 42); err != nil {
			return p, err
		}
		encoded, err := json.Marshal(p)
		if err != nil {
			return p, err
		}
		return p, rdb.Set(ctx, "singleflight:product:42", encoded, time.Hour).Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	p := got.(Product)
	fmt.Println(p.Price)

	if err := db.SetPrice(ctx, 42, 1499); err != nil {
		log.Fatal(err)
	}
	err = rdb.Del(ctx, "singleflight:product:42").Err()
	fmt.Println(err)
	// Output:
	// 1999
	// <nil>
}
