package backends

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// Products is how many rows the database of the quickstart has.
const Products = 10_000

// Product is a row of the database.
type Product struct {
	ID    int
	Name  string
	Cents int // the price
}

// ProductDB is a table of products which counts its queries, and takes its time for each.
type ProductDB struct {
	*DB
	table     string
	queryTime time.Duration
	queries   atomic.Int64
}

// Database opens the database of an example and fills a new table with products. Each query is made to take queryTime.
func Database(ctx context.Context, queryTime time.Duration) (*ProductDB, error) {
	db, err := Open(ctx)
	if err != nil {
		return nil, err
	}
	table, err := db.Create(ctx, "products", `id INTEGER PRIMARY KEY, name TEXT NOT NULL, cents INTEGER NOT NULL`,
		`i, 'Product ' || i, 100 + i * 37 % 9900`, Products)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ProductDB{DB: db, table: table, queryTime: queryTime}, nil
}

// Product reads a product. It returns cacheguard.ErrNotFound if there is none.
func (d *ProductDB) Product(ctx context.Context, id int) (Product, error) {
	d.queries.Add(1)
	conn, err := d.Conn(ctx)
	if err != nil {
		return Product{}, fmt.Errorf("product %d: %w", id, err)
	}
	defer conn.Close()

	select { // this is what makes the query slow: it keeps its connection busy meanwhile
	case <-time.After(d.queryTime):
	case <-ctx.Done():
		return Product{}, fmt.Errorf("product %d: %w", id, context.Cause(ctx))
	}
	p := Product{ID: id}
	query := `SELECT name, cents FROM ` + d.table + ` WHERE id = $1`
	switch err := conn.QueryRowContext(ctx, query, id).Scan(&p.Name, &p.Cents); {
	case errors.Is(err, sql.ErrNoRows):
		return Product{}, cacheguard.ErrNotFound
	case err != nil:
		return Product{}, fmt.Errorf("product %d: %w", id, err)
	}
	return p, nil
}

// Queries returns how many queries were asked so far.
func (d *ProductDB) Queries() int64 { return d.queries.Load() }
