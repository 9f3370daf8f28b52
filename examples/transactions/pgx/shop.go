// Package pgx is the shop with pgx.
package pgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/shop"
)

// Shop is an instance of the service.
type Shop struct {
	shop.Caches
	guard *cacheguard.Guard
	pool  *pgxpool.Pool
}

// New makes a shop. Its user closes the Guard and the pool.
func New(guard *cacheguard.Guard, pool *pgxpool.Pool) (s *Shop, err error) {
	s = &Shop{guard: guard, pool: pool}
	s.Caches, err = shop.NewCaches(guard, shop.Absence{NotFound: pgx.ErrNoRows}, s.product, s.orders)
	return s, err
}

// transact runs a transaction that changes what is named, and whatever else write names.
func (s *Shop) transact(ctx context.Context, c cacheguard.Changes, write func(pgx.Tx, *cacheguard.Intent) error) (err error) {
	in, err := s.guard.Intend(ctx, c)
	if err != nil {
		return err // nothing was written
	}
	// After the commit, a rollback or a panic.
	defer func() { err = errors.Join(err, in.Done(ctx)) }()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return write(tx, in) }) // commits
}

// Buy sells pieces of a product. It is known before which rows it changes.
func (s *Shop) Buy(ctx context.Context, customer, product, count int64) error {
	return s.transact(ctx, s.Sale(customer, product), func(tx pgx.Tx, _ *cacheguard.Intent) error {
		_, err := tx.Exec(ctx, `UPDATE products SET stock = stock - $1 WHERE id = $2`, count, product)
		if err != nil {
			return err // there are not as many
		}
		_, err = tx.Exec(ctx, `INSERT INTO orders (customer, product_id, count) VALUES ($1, $2, $3)`, customer, product, count)
		return err
	})
}

// Discount lowers the prices of a category. The statement says which products those are.
func (s *Shop) Discount(ctx context.Context, category string, percent int64) error {
	joins := cacheguard.Changes{Tags: []string{shop.PricesOfProducts}}
	return s.transact(ctx, joins, func(tx pgx.Tx, in *cacheguard.Intent) error {
		rows, err := tx.Query(ctx, `UPDATE products SET cents = cents * (100 - $1) / 100 WHERE category = $2 RETURNING id`, percent, category)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		return in.Also(ctx, s.Products.Changes(ids...))
	})
}

func (s *Shop) product(ctx context.Context, id int64) (shop.Product, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, name, category, cents, stock FROM products WHERE id = $1`, id)
	if err != nil {
		return shop.Product{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[shop.Product])
}

func (s *Shop) orders(ctx context.Context, customer int64) ([]shop.Line, error) {
	rows, err := s.pool.Query(ctx, `SELECT o.id, p.name, o.count, p.cents FROM orders o JOIN products p ON p.id = product_id WHERE customer = $1`, customer)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[shop.Line])
}
