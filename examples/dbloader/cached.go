package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// CachedRepository is the Repository with a Guard before its reads. This file is all that a cache takes: its methods have
// the names, the types and the errors of those they wrap, so nobody who calls them has to change.
type CachedRepository struct {
	*Repository
	guard *cacheguard.Guard
}

func newCachedRepository(r *Repository, rdb *redis.Client, cfg cacheguard.Config) (*CachedRepository, error) {
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		return nil, err
	}
	return &CachedRepository{r, guard}, nil
}

// Close closes the Guard.
func (c *CachedRepository) Close() error { return c.guard.Close() }

// One function for each kind of key, so that reads and writes cannot disagree about it.
func userKey(id int) string           { return fmt.Sprintf("user:%d", id) }
func productKey(id int) string        { return fmt.Sprintf("product:%d", id) }
func categoryKey(category int) string { return fmt.Sprintf("category:%d", category) }

// User reads a user, or returns sql.ErrNoRows.
func (c *CachedRepository) User(ctx context.Context, id int) (User, error) {
	return cached(ctx, c.guard, userKey(id), func(ctx context.Context) (User, error) { return c.Repository.User(ctx, id) })
}

// Product reads a product, or returns sql.ErrNoRows.
func (c *CachedRepository) Product(ctx context.Context, id int) (Product, error) {
	return cached(ctx, c.guard, productKey(id), func(ctx context.Context) (Product, error) {
		return c.Repository.Product(ctx, id)
	})
}

// InCategory lists the products of a category: their numbers, so that a new price concerns the product only and not every
// list that has it.
func (c *CachedRepository) InCategory(ctx context.Context, category int) ([]int, error) {
	return cached(ctx, c.guard, categoryKey(category), func(ctx context.Context) ([]int, error) {
		return c.Repository.InCategory(ctx, category)
	})
}

// Products reads several products: from the cache those that are there, and the others in one query.
func (c *CachedRepository) Products(ctx context.Context, ids []int) (map[int]Product, error) {
	keys, idOf := make([]string, len(ids)), make(map[string]int, len(ids))
	for i, id := range ids {
		keys[i] = productKey(id)
		idOf[keys[i]] = id
	}
	entries, err := cacheguard.GetMany(ctx, c.guard, keys, func(ctx context.Context, missing []string) (map[string]Product, error) {
		wanted := make([]int, len(missing))
		for i, key := range missing {
			wanted[i] = idOf[key]
		}
		rows, err := c.Repository.Products(ctx, wanted)
		loaded := make(map[string]Product, len(rows))
		for id, p := range rows {
			loaded[productKey(id)] = p
		}
		return loaded, err
	})
	found := make(map[int]Product, len(entries))
	for _, p := range entries {
		found[p.ID] = p
	}
	return found, err
}

// Rename changes the name of a user.
func (c *CachedRepository) Rename(ctx context.Context, id int, name string) error {
	return c.written(ctx, c.Repository.Rename(ctx, id, name), userKey(id))
}

// SetPrice changes the price of a product.
func (c *CachedRepository) SetPrice(ctx context.Context, id, cents int) error {
	return c.written(ctx, c.Repository.SetPrice(ctx, id, cents), productKey(id))
}

// Move puts a product into another category. Both lists change with it. It is an Update because it reads before it writes:
// nobody else moves the product in between, to a third list that then nobody would invalidate.
func (c *CachedRepository) Move(ctx context.Context, id, category int) error {
	return c.guard.Update(ctx, productKey(id), func(ctx context.Context) error {
		old, err := c.Repository.Product(ctx, id) // from the database, not from the cache
		if err != nil {
			return err
		}
		return c.written(ctx, c.Repository.Move(ctx, id, category), categoryKey(old.Category), categoryKey(category))
	})
}

// written invalidates what a write has changed, also when the write says that it failed: it may have reached the database
// all the same. When the invalidation fails, the Guard goes on trying in the background; the caller learns of it, and the
// write is done.
func (c *CachedRepository) written(ctx context.Context, err error, keys ...string) error {
	return errors.Join(err, c.guard.Invalidate(ctx, keys...))
}

// cached is cacheguard.Get with the repository's word for "not there": so absence is remembered too, and callers go on
// seeing the error they know.
func cached[V any](ctx context.Context, g *cacheguard.Guard, key string, load func(context.Context) (V, error)) (V, error) {
	v, err := cacheguard.Get(ctx, g, key, func(ctx context.Context) (V, error) {
		v, err := load(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			err = cacheguard.ErrNotFound
		}
		return v, err
	})
	if errors.Is(err, cacheguard.ErrNotFound) {
		err = sql.ErrNoRows
	}
	return v, err
}
