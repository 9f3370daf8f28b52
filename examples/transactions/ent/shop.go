//go:build generated

// Package ent is the shop with ent. Package db is what ent makes of package schema: `make examples/transactions/ent/db/client.go` writes it, and the tag generated compiles
// both.
package ent

import (
	"context"
	"errors"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/ent/db"
	"github.com/cacheguard/go/examples/transactions/ent/db/order"
	"github.com/cacheguard/go/examples/transactions/ent/db/product"
	"github.com/cacheguard/go/examples/transactions/shop"
)

//go:generate go run entgo.io/ent/cmd/ent@v0.14.5 generate --feature sql/lock --target ./db ./schema
//go:generate rm -r ./db/enttest ./db/hook

// Shop is an instance of the service.
type Shop struct {
	shop.Caches
	guard  *cacheguard.Guard
	client *db.Client
}

// New makes a shop. Its user closes the Guard and the client.
func New(guard *cacheguard.Guard, client *db.Client) (s *Shop, err error) {
	s = &Shop{guard: guard, client: client}
	s.Caches, err = shop.NewCaches(guard, shop.Absence{NotFound: new(db.NotFoundError), IsNotFound: db.IsNotFound}, s.product, s.orders)
	return s, err
}

// transact runs a transaction that changes what is named, and whatever else write names.
func (s *Shop) transact(ctx context.Context, c cacheguard.Changes, write func(*db.Tx, *cacheguard.Intent) error) (err error) {
	in, err := s.guard.Intend(ctx, c)
	if err != nil {
		return err // nothing was written
	}
	// After the commit, a rollback or a panic.
	defer func() { err = errors.Join(err, in.Done(ctx)) }()
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := write(tx, in); err != nil {
		return err
	}
	return tx.Commit()
}

// Buy sells pieces of a product. It is known before which rows it changes.
func (s *Shop) Buy(ctx context.Context, customer, product, count int64) error {
	return s.transact(ctx, s.Sale(customer, product), func(tx *db.Tx, _ *cacheguard.Intent) error {
		if err := tx.Product.UpdateOneID(product).AddStock(-count).Exec(ctx); err != nil {
			return err // there are not as many
		}
		return tx.Order.Create().SetCustomer(customer).SetProductID(product).SetCount(count).Exec(ctx)
	})
}

// Discount lowers the prices of a category. SELECT … FOR UPDATE says which products those are, and nobody else changes them until the commit.
func (s *Shop) Discount(ctx context.Context, category string, percent int64) error {
	joins := cacheguard.Changes{Tags: []string{shop.PricesOfProducts}}
	return s.transact(ctx, joins, func(tx *db.Tx, in *cacheguard.Intent) error {
		locked, err := tx.Product.Query().Where(product.Category(category)).Order(product.ByID()).ForUpdate().All(ctx)
		if err != nil {
			return err
		}
		ids := make([]int64, len(locked))
		for i, p := range locked {
			ids[i] = p.ID
			if err := p.Update().SetCents(p.Cents * (100 - percent) / 100).Exec(ctx); err != nil {
				return err
			}
		}
		return in.Also(ctx, s.Products.Changes(ids...))
	})
}

func (s *Shop) product(ctx context.Context, id int64) (shop.Product, error) {
	p, err := s.client.Product.Get(ctx, id)
	if err != nil {
		return shop.Product{}, err
	}
	return shop.Product{ID: p.ID, Name: p.Name, Category: p.Category, Cents: p.Cents, Stock: p.Stock}, nil
}

func (s *Shop) orders(ctx context.Context, customer int64) ([]shop.Line, error) {
	rows, err := s.client.Order.Query().Where(order.Customer(customer)).WithProduct().All(ctx)
	all := make([]shop.Line, len(rows))
	for i, o := range rows {
		all[i] = shop.Line{Order: o.ID, Product: o.Edges.Product.Name, Count: o.Count, Cents: o.Edges.Product.Cents}
	}
	return all, err
}
