// Package sql is the shop with database/sql.
package sql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/shop"
)

// Shop is an instance of the service.
type Shop struct {
	shop.Caches
	guard *cacheguard.Guard
	db    *sql.DB
}

// New makes a shop. Its user closes the Guard and the database.
func New(guard *cacheguard.Guard, db *sql.DB) (s *Shop, err error) {
	s = &Shop{guard: guard, db: db}
	s.Caches, err = shop.NewCaches(guard, shop.Absence{NotFound: sql.ErrNoRows}, s.product, s.orders)
	return s, err
}

// transact runs a transaction that changes what is named, and whatever else write names.
func (s *Shop) transact(ctx context.Context, c cacheguard.Changes, write func(*sql.Tx, *cacheguard.Intent) error) (err error) {
	in, err := s.guard.Intend(ctx, c)
	if err != nil {
		return err // nothing was written
	}
	// After the commit, a rollback or a panic.
	defer func() { err = errors.Join(err, in.Done(ctx)) }()
	tx, err := s.db.BeginTx(ctx, nil)
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
	return s.transact(ctx, s.Sale(customer, product), func(tx *sql.Tx, _ *cacheguard.Intent) error {
		_, err := tx.ExecContext(ctx, `UPDATE products SET stock = stock - $1 WHERE id = $2`, count, product)
		if err != nil {
			return err // there are not as many
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO orders (customer, product_id, count) VALUES ($1, $2, $3)`, customer, product, count)
		return err
	})
}

// Discount lowers the prices of a category. The statement says which products those are.
func (s *Shop) Discount(ctx context.Context, category string, percent int64) error {
	joins := cacheguard.Changes{Tags: []string{shop.PricesOfProducts}}
	return s.transact(ctx, joins, func(tx *sql.Tx, in *cacheguard.Intent) error {
		rows, err := tx.QueryContext(ctx, `UPDATE products SET cents = cents * (100 - $1) / 100 WHERE category = $2 RETURNING id`, percent, category)
		if err != nil {
			return err
		}
		defer rows.Close()
		var ids []int64
		for rows.Next() {
			var id int64
			err = errors.Join(err, rows.Scan(&id))
			ids = append(ids, id)
		}
		return errors.Join(err, rows.Err(), in.Also(ctx, s.Products.Changes(ids...)))
	})
}

func (s *Shop) product(ctx context.Context, id int64) (p shop.Product, err error) {
	row := s.db.QueryRowContext(ctx, `SELECT id, name, category, cents, stock FROM products WHERE id = $1`, id)
	err = row.Scan(&p.ID, &p.Name, &p.Category, &p.Cents, &p.Stock)
	return p, err
}

func (s *Shop) orders(ctx context.Context, customer int64) (all []shop.Line, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT o.id, p.name, o.count, p.cents FROM orders o JOIN products p ON p.id = product_id WHERE customer = $1`, customer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l shop.Line
		err = errors.Join(err, rows.Scan(&l.Order, &l.Product, &l.Count, &l.Cents))
		all = append(all, l)
	}
	return all, errors.Join(err, rows.Err())
}
