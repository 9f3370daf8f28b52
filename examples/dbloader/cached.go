package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// CachedRepository is the Repository with a Cache before each kind of its reads. This file is all that a cache takes: its methods
// have the names, the types and the errors of those they wrap, so nobody who calls them has to change.
type CachedRepository struct {
	*Repository
	guard      *cacheguard.Guard
	users      *cacheguard.Cache[int, User]
	products   *cacheguard.Cache[int, Product]
	categories *cacheguard.Cache[int, []int] // numbers of products: so a new price concerns one product, and not each list that has it
}

func newCachedRepository(r *Repository, rdb *redis.Client, cfg cacheguard.Config) (*CachedRepository, error) {
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		return nil, err
	}
	c := &CachedRepository{Repository: r, guard: guard}
	var errs [3]error
	c.users, errs[0] = cacheguard.NewCache(guard, cacheguard.CacheConfig[int, User]{
		Name: "user", Load: r.User, NotFound: sql.ErrNoRows,
	})
	c.products, errs[1] = cacheguard.NewCache(guard, cacheguard.CacheConfig[int, Product]{
		Name: "product", Load: r.Product, LoadMany: r.Products, NotFound: sql.ErrNoRows,
	})
	c.categories, errs[2] = cacheguard.NewCache(guard, cacheguard.CacheConfig[int, []int]{
		Name: "category", Load: r.InCategory,
	})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, guard.Close())
	}
	return c, nil
}

// Close closes the Guard.
func (c *CachedRepository) Close() error { return c.guard.Close() }

// User reads a user, or returns sql.ErrNoRows.
func (c *CachedRepository) User(ctx context.Context, id int) (User, error) {
	return c.users.Get(ctx, id)
}

// Product reads a product, or returns sql.ErrNoRows.
func (c *CachedRepository) Product(ctx context.Context, id int) (Product, error) {
	return c.products.Get(ctx, id)
}

// Products reads several products: from the cache those that are there, and the others in one query.
func (c *CachedRepository) Products(ctx context.Context, ids []int) (map[int]Product, error) {
	return c.products.GetMany(ctx, ids)
}

// InCategory lists the products of a category.
func (c *CachedRepository) InCategory(ctx context.Context, category int) ([]int, error) {
	return c.categories.Get(ctx, category)
}

// Rename changes the name of a user. The cache is invalidated also when the write says that it failed: it may have reached the
// database all the same. When the invalidation fails, the Guard goes on trying in the background; the caller learns of
// it, and the write is done.
func (c *CachedRepository) Rename(ctx context.Context, id int, name string) error {
	err := c.Repository.Rename(ctx, id, name)
	return errors.Join(err, c.users.Invalidate(ctx, id))
}

// SetPrice changes the price of a product.
func (c *CachedRepository) SetPrice(ctx context.Context, id, cents int) error {
	err := c.Repository.SetPrice(ctx, id, cents)
	return errors.Join(err, c.products.Invalidate(ctx, id))
}

// Move puts a product into another category. Both lists change with it. It is an Update because it reads before it writes:
// nobody else moves the product in between, to a third list that then nobody would invalidate.
func (c *CachedRepository) Move(ctx context.Context, id, category int) error {
	return c.products.Update(ctx, id, func(ctx context.Context) error {
		old, err := c.Repository.Product(ctx, id) // from the database, not from the cache
		if err != nil {
			return err
		}
		err = c.Repository.Move(ctx, id, category)
		return errors.Join(err, c.categories.Invalidate(ctx, old.Category, category))
	})
}
