package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

// How much is in the database.
const (
	users      = 1_000
	products   = 1_000
	categories = 50 // with 20 products each, to begin with
)

// User is a row of the table of users.
type User struct {
	ID   int
	Name string
}

// Product is a row of the table of products.
type Product struct {
	ID       int
	Name     string
	Category int
	Cents    int // the price
}

// Repository is what the service had before it had a cache: methods that read and write the database. Nothing in this
// file knows of a cache.
type Repository struct {
	db              *sqldb.DB
	users, products string        // tables
	queryTime       time.Duration // what the way to the database and back takes
	queries         atomic.Int64
}

func openRepository(ctx context.Context, db *sqldb.DB, queryTime time.Duration) (*Repository, error) {
	r := &Repository{db: db, queryTime: queryTime}
	var err error
	if r.users, err = db.Create(ctx, "users", `id INTEGER PRIMARY KEY, name TEXT NOT NULL`, `i, 'User ' || i`, users); err != nil {
		return nil, err
	}
	r.products, err = db.Create(ctx, "products",
		`id INTEGER PRIMARY KEY, name TEXT NOT NULL, category INTEGER NOT NULL, cents INTEGER NOT NULL`,
		fmt.Sprintf(`i, 'Product ' || i, 1 + i %% %d, 100 + i * 37 %% 9900`, categories), products)
	return r, err
}

// User reads a user, or returns sql.ErrNoRows.
func (r *Repository) User(ctx context.Context, id int) (User, error) {
	u := User{ID: id}
	err := r.db.QueryRowContext(r.asked(ctx), `SELECT name FROM `+r.users+` WHERE id = $1`, id).Scan(&u.Name)
	return u, err
}

// Product reads a product, or returns sql.ErrNoRows.
func (r *Repository) Product(ctx context.Context, id int) (Product, error) {
	found, err := r.Products(ctx, []int{id})
	if err != nil {
		return Product{}, err
	}
	p, ok := found[id]
	if !ok {
		return p, sql.ErrNoRows
	}
	return p, nil
}

// Products reads several products in one query. Those that are not there are missing in the result.
func (r *Repository) Products(ctx context.Context, ids []int) (map[int]Product, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	wanted := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]") // numbers: nothing to escape
	found := make(map[int]Product, len(ids))
	var p Product
	query := `SELECT id, name, category, cents FROM ` + r.products + ` WHERE id IN (` + wanted + `)`
	err := r.each(ctx, query, []any{&p.ID, &p.Name, &p.Category, &p.Cents}, func() { found[p.ID] = p })
	return found, err
}

// InCategory lists the products of a category.
func (r *Repository) InCategory(ctx context.Context, category int) (ids []int, err error) {
	var id int
	query := `SELECT id FROM ` + r.products + ` WHERE category = $1 ORDER BY id`
	err = r.each(ctx, query, []any{&id}, func() { ids = append(ids, id) }, category)
	return ids, err
}

// Rename changes the name of a user.
func (r *Repository) Rename(ctx context.Context, id int, name string) error {
	return r.write(ctx, `UPDATE `+r.users+` SET name = $2 WHERE id = $1`, id, name)
}

// SetPrice changes the price of a product.
func (r *Repository) SetPrice(ctx context.Context, id, cents int) error {
	return r.write(ctx, `UPDATE `+r.products+` SET cents = $2 WHERE id = $1`, id, cents)
}

// Move puts a product into another category.
func (r *Repository) Move(ctx context.Context, id, category int) error {
	return r.write(ctx, `UPDATE `+r.products+` SET category = $2 WHERE id = $1`, id, category)
}

// Queries returns how many queries were asked so far, those that write included.
func (r *Repository) Queries() int64 { return r.queries.Load() }

// asked counts a query, and takes the time that it takes.
func (r *Repository) asked(ctx context.Context) context.Context {
	r.queries.Add(1)
	program.Pause(ctx, r.queryTime) // when ctx ends, the query says so
	return ctx
}

func (r *Repository) each(ctx context.Context, query string, columns []any, row func(), args ...any) (err error) {
	rows, err := r.db.QueryContext(r.asked(ctx), query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		row()
	}
	return rows.Err()
}

// write runs a statement that must change one row.
func (r *Repository) write(ctx context.Context, statement string, args ...any) error {
	done, err := r.db.Writer.ExecContext(r.asked(ctx), statement, args...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); n != 1 || err != nil {
		return errors.Join(sql.ErrNoRows, err)
	}
	return nil
}
