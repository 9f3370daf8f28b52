package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// versioned makes a Cache of things that load at once.
func versioned(t testing.TB, rdb *redis.Client, version int) *cacheguard.Cache[int, []byte] {
	t.Helper()
	c, err := cacheguard.NewCache(countedGuard(t, rdb, cacheguard.Config{}), cacheguard.CacheConfig[int, []byte]{
		Name: "thing", Version: version, Load: func(ctx context.Context, _ int) ([]byte, error) { return loadValue(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// versionedHit is a hit of a Cache with a Version.
func versionedHit(version int) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		c := versioned(t, rdb, version)
		get := func() error {
			_, err := c.Get(t.Context(), 1)
			return err
		}
		if err := errors.Join(get(), get()); err != nil {
			t.Fatal(err)
		}
		return get
	}
}

// versionedInvalidate invalidates what another version has, too.
func versionedInvalidate(version int) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		c := versioned(t, rdb, version)
		return func() error { return c.Invalidate(t.Context(), 1) }
	}
}
