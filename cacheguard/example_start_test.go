package cacheguard_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

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
