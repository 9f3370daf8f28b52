// Package sqlc is the shop with sqlc, on pgx. Package db is what sqlc makes of queries.sql.
package sqlc

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/shop"
	"github.com/cacheguard/go/examples/transactions/sqlc/db"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate

// Shop is an instance of the service.
type Shop struct {
	shop.Caches
	guard   *cacheguard.Guard
	pool    *pgxpool.Pool
	queries *db.Queries
}

// New makes a shop. Its user closes the Guard and the pool.
func New(guard *cacheguard.Guard, pool *pgxpool.Pool) (s *Shop, err error) {
	s = &Shop{guard: guard, pool: pool, queries: db.New(pool)}
	s.Caches, err = shop.NewCaches(guard, shop.Absence{NotFound: pgx.ErrNoRows}, s.product, s.orders)
	return s, err
}

// transact runs a transaction that changes what is named, and whatever else write names.
func (s *Shop) transact(ctx context.Context, c cacheguard.Changes, write func(*db.Queries, *cacheguard.Intent) error) (err error) {
	in, err := s.guard.Intend(ctx, c)
	if err != nil {
		return err // nothing was written
	}
	// After the commit, a rollback or a panic.
	defer func() { err = errors.Join(err, in.Done(ctx)) }()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return write(s.queries.WithTx(tx), in) }) // commits
}

// Buy sells pieces of a product. It is known before which rows it changes.
func (s *Shop) Buy(ctx context.Context, customer, product, count int64) error {
	return s.transact(ctx, s.Sale(customer, product), func(q *db.Queries, _ *cacheguard.Intent) error {
		if err := q.Take(ctx, db.TakeParams{ID: product, Count: count}); err != nil {
			return err // there are not as many
		}
		return q.Order(ctx, db.OrderParams{Customer: customer, ProductID: product, Count: count})
	})
}

// Discount lowers the prices of a category. The statement says which products those are.
func (s *Shop) Discount(ctx context.Context, category string, percent int64) error {
	joins := cacheguard.Changes{Tags: []string{shop.PricesOfProducts}}
	return s.transact(ctx, joins, func(q *db.Queries, in *cacheguard.Intent) error {
		ids, err := q.Discount(ctx, db.DiscountParams{Category: category, Percent: percent})
		if err != nil {
			return err
		}
		return in.Also(ctx, s.Products.Changes(ids...))
	})
}

func (s *Shop) product(ctx context.Context, id int64) (shop.Product, error) {
	p, err := s.queries.Product(ctx, id)
	return shop.Product(p), err
}

func (s *Shop) orders(ctx context.Context, customer int64) ([]shop.Line, error) {
	rows, err := s.queries.Orders(ctx, customer)
	all := make([]shop.Line, len(rows))
	for i, r := range rows {
		all[i] = shop.Line{Order: r.ID, Product: r.Name, Count: r.Count, Cents: r.Cents}
	}
	return all, err
}
