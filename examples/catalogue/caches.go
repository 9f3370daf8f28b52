package main

import (
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
)

// caches are the kinds of things that the service remembers, on one Guard. Lists and searches are numbers of products, not
// products: so a new price concerns one entry, and not each list that shows it.
type caches struct {
	guard    *cacheguard.Guard
	products *cacheguard.Cache[int64, Product]
	lists    *cacheguard.Cache[string, []int64] // by category
	searches *cacheguard.Cache[string, []int64] // by words
}

// newCaches caches what is in the store.
func newCaches(s *store, rdb *redis.Client, prefix string, counts cacheguard.Observer, log *slog.Logger) (*caches, error) {
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix:       prefix,
		MaxLoads:     32, // fewer than the database has connections: reads leave some to writes
		RedisTimeout: backends.Patience,
		Observers:    []cacheguard.Observer{counts},
		Logger:       log,
	})
	if err != nil {
		return nil, err
	}
	c := &caches{guard: guard}
	if err := c.open(s); err != nil {
		return nil, errors.Join(err, guard.Close())
	}
	return c, nil
}

func (c *caches) open(s *store) (err error) {
	// Products are read most, and every write of one goes through the cache. So they may stay for long, and for another day
	// during which they are served while they are loaded again, or while the database is down.
	c.products, err = cacheguard.NewCache(c.guard, cacheguard.CacheConfig[int64, Product]{
		Name:        "product",
		Load:        s.Product,
		LoadMany:    s.Products,    // one query for all that a cart misses
		NotFound:    sql.ErrNoRows, // is remembered, and what callers get, as without a cache
		Version:     2,             // of Product: one more when it changes, so that both programs have their entries during a deployment
		TTL:         10 * time.Minute,
		StaleFor:    24 * time.Hour,
		NegativeTTL: time.Minute,
		Tags:        func(_ int64, p Product) []string { return []string{ofCategory(p.Category)} },
	})
	if err != nil {
		return err
	}
	c.lists, err = cacheguard.NewCache(c.guard, cacheguard.CacheConfig[string, []int64]{
		Name: "list", Load: s.InCategory, NotFound: sql.ErrNoRows, TTL: 5 * time.Minute, StaleFor: time.Hour,
	})
	if err != nil {
		return err
	}
	// A search may miss a new product for half a minute. That a crowd searches for different words takes no more than
	// eight queries at a time, so products and lists still load.
	c.searches, err = cacheguard.NewCache(c.guard, cacheguard.CacheConfig[string, []int64]{
		Name: "search", Load: s.Search, TTL: 30 * time.Second, StaleFor: -1, MaxLoads: 8,
		Tags: func(_ string, found []int64) []string {
			tags := make([]string, len(found)) // at most 50, by the query; an entry can have 256
			for i, id := range found {
				tags[i] = showing(id)
			}
			return tags
		},
	})
	return err
}

// One function for each tag, so that those who set it and those who invalidate it cannot disagree.
func ofCategory(category string) string { return "category:" + category }
func showing(id int64) string           { return "showing:" + strconv.FormatInt(id, 10) }
