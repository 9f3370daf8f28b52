package wrap

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// Users are names of users, cached in Redis and in this process.
type Users struct {
	guard *cacheguard.Guard
	cache *cacheguard.Cache[string, string]
}

// NewUsers opens the cache of one process. A cluster's slots are the library's affair.
func NewUsers(rdb redis.UniversalClient, load Loader, prefix string) (*Users, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: prefix, TTL: time.Hour, Local: cacheguard.LocalConfig{MaxEntries: 100_000, TTL: time.Minute},
	})
	if err != nil {
		return nil, err
	}
	cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[string, string]{
		Name: "user", LoadMany: load,
		Load: func(ctx context.Context, id string) (string, error) {
			names, err := load(ctx, []string{id})
			name, found := names[id]
			if err == nil && !found {
				err = cacheguard.ErrNotFound
			}
			return name, err
		},
	})
	return &Users{guard, cache}, err
}

// GetMany returns the names of the users that there are.
func (u *Users) GetMany(ctx context.Context, ids []string) (map[string]string, error) {
	return u.cache.GetMany(ctx, ids)
}

// Delete is called after the users were changed. On this process no later GetMany has the older names, on the others
// none that begins MaxLag later, whether they heard of it or not.
func (u *Users) Delete(ctx context.Context, ids ...string) error {
	return u.cache.Invalidate(ctx, ids...)
}

// Close is called where the service ends.
func (u *Users) Close() error { return u.guard.Close() }
