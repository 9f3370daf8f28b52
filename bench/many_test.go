package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

// hits makes a GetMany of so many keys, all of which are there.
func hits(n int) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		g := countedGuard(t, rdb, cacheguard.Config{})
		keys, _ := manyKeys(n)
		load := func(_ context.Context, missing []string) (map[string][]byte, error) {
			all := make(map[string][]byte, len(missing))
			for _, key := range missing {
				all[key] = scenario.ValueOf(key, valueSize)
			}
			return all, nil
		}
		get := func() error {
			got, err := cacheguard.GetMany(t.Context(), g, keys, load)
			return errors.Join(err, countOf(got, n))
		}
		if err := errors.Join(get(), get()); err != nil {
			t.Fatal(err)
		}
		return get
	}
}

// mget is the same by hand.
func mget(n int) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		keys, args := manyKeys(n)
		for i, key := range keys {
			if err := rdb.Set(t.Context(), args[i], scenario.ValueOf(key, valueSize), ttl).Err(); err != nil {
				t.Fatal(err)
			}
		}
		return func() error {
			read, err := rdb.MGet(t.Context(), args...).Result()
			got := make(map[string][]byte, n)
			for i, v := range read {
				if s, found := v.(string); found {
					got[keys[i]] = []byte(s)
				}
			}
			return errors.Join(err, countOf(got, n))
		}
	}
}

// manyKeys are new keys, and their names in Redis.
func manyKeys(n int) (keys, inRedis []string) {
	of := rand.Text()
	for i := range n {
		keys = append(keys, fmt.Sprint(of, i))
		inRedis = append(inRedis, "hand:"+keys[i])
	}
	return keys, inRedis
}

func countOf(got map[string][]byte, want int) error {
	if len(got) != want {
		return fmt.Errorf("%d values of %d", len(got), want)
	}
	return nil
}

// BenchmarkGetMany reads keys that are all there, beside an MGET for each call, whose values are put into a map.
func BenchmarkGetMany(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, prep := range map[string]func(testing.TB, *redis.Client) func() error{"cacheguard": hits(n), "MGET by hand": mget(n)} {
			b.Run(fmt.Sprintf("%d keys/%s", n, name), func(b *testing.B) {
				do := prep(b, client(b))
				measured(b, do)
			})
		}
	}
}
