package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

// How much is in the database.
const (
	products   = 1000
	categories = 50 // of 20 products each
)

// Product is a row of the database.
type Product struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Category int    `json:"category"`
	Cents    int    `json:"cents"` // the price
}

// shop is the database. It knows of no cache.
type shop struct {
	db        *sqldb.DB
	table     string
	queryTime time.Duration
	queries   atomic.Int64
}

func openShop(ctx context.Context, db *sqldb.DB, queryTime time.Duration) (*shop, error) {
	table, err := db.Create(ctx, "products",
		`id INTEGER PRIMARY KEY, name TEXT NOT NULL, category INTEGER NOT NULL, cents INTEGER NOT NULL`,
		fmt.Sprintf(`i, 'Product ' || i, 1 + i %% %d, 100 + i * 37 %% 9900`, categories), products)
	return &shop{db: db, table: table, queryTime: queryTime}, err
}

// product reads a product, or returns sql.ErrNoRows.
func (s *shop) product(ctx context.Context, id int) (Product, error) {
	found, err := s.read(ctx, `id = $1`, id)
	if err == nil && len(found) == 0 {
		return Product{}, sql.ErrNoRows
	}
	return append(found, Product{})[0], err
}

// category reads the products of a category, or returns sql.ErrNoRows.
func (s *shop) category(ctx context.Context, id int) ([]Product, error) {
	found, err := s.read(ctx, `category = $1`, id)
	if err == nil && len(found) == 0 {
		return nil, sql.ErrNoRows
	}
	return found, err
}

func (s *shop) read(ctx context.Context, which string, id int) (found []Product, err error) {
	s.queries.Add(1)
	conn, err := s.db.Conn(ctx) // kept while the query takes its time: there are only so many
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	program.Pause(ctx, s.queryTime) // when ctx ends, the query says so
	rows, err := conn.QueryContext(ctx, `SELECT id, name, category, cents FROM `+s.table+` WHERE `+which+` ORDER BY id`, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p Product
		if err := rows.Scan(&p.ID, &p.Name, &p.Category, &p.Cents); err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, rows.Err()
}

// setPrice changes a price, and returns the category whose list shows it; or sql.ErrNoRows.
func (s *shop) setPrice(ctx context.Context, id, cents int) (category int, err error) {
	s.queries.Add(1)
	err = s.db.Writer.QueryRowContext(ctx, `UPDATE `+s.table+` SET cents = $2 WHERE id = $1 RETURNING category`, id, cents).Scan(&category)
	return category, err
}
