package cacheguard_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// store stands for a database.
type store map[int]int

func (s store) Price(_ context.Context, id int) (int, error) {
	price, found := s[id]
	if !found {
		return 0, cacheguard.ErrNotFound
	}
	return price, nil
}

func (s store) SavePrice(_ context.Context, id, price int) error {
	s[id] = price
	return nil
}

func newClient() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: cacheguard.SharedAddr()})
}

func ExampleGet() {
	ctx, rdb, db := context.Background(), newClient(), store{42: 1999}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	price, err := cacheguard.Get(ctx, guard, "price:42", func(ctx context.Context) (int, error) {
		return db.Price(ctx, 42) // runs once, however many instances and callers ask
	})
	fmt.Println(price, err)
	// Output: 1999 <nil>
}

func ExampleGuard_Invalidate() {
	ctx, rdb, db := context.Background(), newClient(), store{42: 1999}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-invalidate"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	price := func() (int, error) {
		return cacheguard.Get(ctx, guard, "price:42", func(ctx context.Context) (int, error) {
			return db.Price(ctx, 42)
		})
	}
	fmt.Println(price())
	if err := db.SavePrice(ctx, 42, 1499); err != nil {
		log.Fatal(err)
	}
	if err := guard.Invalidate(ctx, "price:42"); err != nil {
		log.Print(err) // the old price may be served until its TTL ends
	}
	fmt.Println(price())
	// Output:
	// 1999 <nil>
	// 1499 <nil>
}

func ExampleGuard_Update() {
	ctx, rdb, db := context.Background(), newClient(), store{42: 1999}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-update"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	price := func() (int, error) {
		return cacheguard.Get(ctx, guard, "price:42", func(ctx context.Context) (int, error) {
			return db.Price(ctx, 42)
		})
	}
	fmt.Println(price())
	err = guard.Update(ctx, "price:42", func(ctx context.Context) error {
		return db.SavePrice(ctx, 42, 1499) // and, with the fence of ctx, only if it saw no later one
	})
	fmt.Println(err)
	fmt.Println(price())
	// Output:
	// 1999 <nil>
	// <nil>
	// 1499 <nil>
}

func ExampleSetTTL() {
	ctx, rdb := context.Background(), newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-ttl", TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	token, err := cacheguard.Get(ctx, guard, "session", func(ctx context.Context) (string, error) {
		token, validFor := "secret", 5*time.Minute // what an identity provider returned
		cacheguard.SetTTL(ctx, validFor-10*time.Second)
		return token, nil
	})
	fmt.Println(token, err)
	// Output: secret <nil>
}

func ExampleGet_notFound() {
	ctx, rdb, db := context.Background(), newClient(), store{}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-absent", NegativeTTL: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	_, err = cacheguard.Get(ctx, guard, "price:7", func(ctx context.Context) (int, error) {
		return db.Price(ctx, 7)
	})
	fmt.Println(errors.Is(err, cacheguard.ErrNotFound))
	// Output: true
}

func ExampleSetTags() {
	ctx, rdb, db := context.Background(), newClient(), store{42: 1999}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "tagged", TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	list := func() string {
		text, err := cacheguard.Get(ctx, guard, "list:shoes", func(ctx context.Context) (string, error) {
			cacheguard.SetTags(ctx, "category:shoes", "product:42")
			price, err := db.Price(ctx, 42)
			return fmt.Sprint("42 costs ", price), err
		})
		if err != nil {
			log.Fatal(err)
		}
		return text
	}
	fmt.Println(list())
	if err := db.SavePrice(ctx, 42, 1499); err != nil {
		log.Fatal(err)
	}
	if err := guard.InvalidateTags(ctx, "product:42"); err != nil { // all that shows the product
		log.Fatal(err)
	}
	fmt.Println(list())
	// Output:
	// 42 costs 1999
	// 42 costs 1499
}

func ExampleNew() {
	rdb := newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix:   "shop",
		TTL:      time.Minute,      // how long a value is fresh
		StaleFor: 10 * time.Minute, // after that it is served while one instance loads a new one
		MaxLoads: 32,               // how many queries this instance sends to the database at once
		Logger:   slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close() // before rdb is closed

	if err := guard.SelfCheck(context.Background()); err != nil {
		log.Print(err) // names what is missing; the guard works without Redis, too
	}
	// Output:
}

func ExampleGetMany() {
	ctx, rdb, db := context.Background(), newClient(), store{1: 300, 2: 250}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-many"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	ids := map[string]int{"price:1": 1, "price:2": 2, "price:3": 3}

	prices, err := cacheguard.GetMany(ctx, guard, []string{"price:1", "price:2", "price:3"},
		func(_ context.Context, missing []string) (map[string]int, error) {
			slices.Sort(missing)
			fmt.Println("one query for", missing)
			found := make(map[string]int)
			for _, key := range missing {
				if price, ok := db[ids[key]]; ok {
					found[key] = price // a key that is left out does not exist
				}
			}
			return found, nil
		})
	fmt.Println(prices, err)
	// Output:
	// one query for [price:1 price:2 price:3]
	// map[price:1:300 price:2:250] <nil>
}

func ExampleGuard_UpdateMany() {
	ctx, rdb, db := context.Background(), newClient(), store{1: 300, 2: 250}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-update-many"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	err = guard.UpdateMany(ctx, []string{"price:1", "price:2"}, func(ctx context.Context) error {
		if err := db.SavePrice(ctx, 1, 280); err != nil {
			return err
		}
		return db.SavePrice(ctx, 2, 230)
	})
	fmt.Println(err)
	// Output: <nil>
}

// A token knows how long it is good, so the Guard asks the token.
func ExampleFetch() {
	type token struct {
		Secret  string
		Expires time.Time
	}
	ctx, rdb := context.Background(), newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-fetch"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()

	got, how, err := cacheguard.Fetch(ctx, guard, "token", cacheguard.Source[token]{
		Judge: func(t token) cacheguard.Verdict {
			switch left := time.Until(t.Expires); {
			case left < 10*time.Second:
				return cacheguard.Replace
			case left < time.Minute:
				return cacheguard.Refresh // serve it, and load another one in the background
			}
			return cacheguard.Serve
		},
		Load: func(ctx context.Context, _ *token) (token, error) {
			cacheguard.SetTTL(ctx, time.Hour)
			return token{"secret", time.Now().Add(time.Hour)}, nil // what an identity provider returned
		},
	})
	fmt.Println(got.Secret, how, err)
	// Output: secret loaded <nil>
}

func ExampleGuard_SelfCheck() {
	ctx, rdb := context.Background(), newClient()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "example-check"})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	fmt.Println(guard.SelfCheck(ctx)) // an error names the command, key or channel that Redis refused
	// Output: <nil>
}
