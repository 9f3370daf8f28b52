package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/cacheguard/go/cacheguard"
)

// catalogue is what the service does, cached. It has the types and the errors of the store, so those who call it need not know.
type catalogue struct {
	store *store
	*caches
	log *slog.Logger
}

// Product returns a product, or sql.ErrNoRows.
func (c *catalogue) Product(ctx context.Context, id int64) (Product, error) {
	return c.products.Get(ctx, id)
}

// InCategory returns the products of a category, or sql.ErrNoRows.
func (c *catalogue) InCategory(ctx context.Context, category string) ([]Product, error) {
	ids, err := c.lists.Get(ctx, category)
	if err != nil {
		return nil, err
	}
	return c.All(ctx, ids)
}

// Search returns products whose name contains the words.
func (c *catalogue) Search(ctx context.Context, words string) ([]Product, error) {
	ids, err := c.searches.Get(ctx, words)
	if err != nil {
		return nil, err
	}
	return c.All(ctx, ids)
}

// All returns the products with these ids, in their order; what does not exist is left out.
func (c *catalogue) All(ctx context.Context, ids []int64) ([]Product, error) {
	found, err := c.products.GetMany(ctx, ids)
	all := make([]Product, 0, len(ids))
	for _, id := range ids {
		if p, ok := found[id]; ok {
			all = append(all, p)
		}
	}
	return all, err
}

// SetPrice changes a price. It affects no list, and the next reader gets the product that the database returns: a Put. No
// load that read the old price stores it afterwards, not even if this process dies after the commit.
func (c *catalogue) SetPrice(ctx context.Context, id int64, cents int) error {
	return c.products.Put(ctx, id, func(ctx context.Context) (Product, error) {
		return c.store.SetPrice(ctx, id, cents)
	})
}

// Save adds a product, or replaces it. It may move to another category, and then two lists change with it. Which ones is only
// known when nobody else can move it any more: within the Put. So that is where Also names them, before the store commits.
func (c *catalogue) Save(ctx context.Context, p Product) error {
	return c.products.Put(ctx, p.ID, func(ctx context.Context) (Product, error) {
		changes := c.lists.Changes(p.Category)
		switch old, err := c.store.Product(ctx, p.ID); { // from the database, not from the cache
		case err == nil:
			changes = c.lists.Changes(p.Category, old.Category)
		case !errors.Is(err, sql.ErrNoRows):
			return Product{}, err
		}
		changes.Tags = []string{showing(p.ID)}
		if err := cacheguard.Also(ctx, changes); err != nil {
			return Product{}, err
		}
		return p, c.store.Save(ctx, p)
	})
}

// Delete deletes a product, or returns sql.ErrNoRows.
func (c *catalogue) Delete(ctx context.Context, id int64) error {
	return c.products.Update(ctx, id, func(ctx context.Context) error {
		p, err := c.store.Product(ctx, id)
		if err != nil {
			return err
		}
		changes := c.lists.Changes(p.Category)
		changes.Tags = []string{showing(id)}
		if err := cacheguard.Also(ctx, changes); err != nil {
			return err
		}
		return c.store.Delete(ctx, id)
	})
}

// Discount lowers all prices of a category: one statement, and one tag, however many products there are. There is no key to lock, so an
// intent stands on the tag until the store has committed: if this process dies before Done, no old price outlasts the intent.
func (c *catalogue) Discount(ctx context.Context, category string, percent int) error {
	in, err := c.guard.Intend(ctx, cacheguard.Changes{Tags: []string{ofCategory(category)}})
	if err != nil {
		return err // nothing was written
	}
	err = c.store.Discount(ctx, category, percent)
	// Also after an error, as the statement may have been committed. Invalidations that cannot be sent are sent again until that succeeds. The caller
	// gets no error, or it would repeat the discount.
	if err := in.Done(ctx); err != nil {
		c.log.WarnContext(ctx, "old prices may be shown for a moment", "category", category, "error", err)
	}
	return err
}
