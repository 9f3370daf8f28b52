package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

const products = 100 // to begin with, 20 in each category

// Product is a row of the database, and what is cached.
type Product struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Category string `json:"category"`
	Cents    int    `json:"cents"` // the price
}

// store is the database. Nothing in this file knows of a cache.
type store struct {
	db    *sqldb.DB
	table string
	takes time.Duration // what a query takes, beside the database's own time
	log   *slog.Logger  // gets a line for each query
}

func openStore(ctx context.Context, db *sqldb.DB, takes time.Duration, log *slog.Logger) (*store, error) {
	table, err := db.Create(ctx, "products",
		`id BIGINT PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, cents INTEGER NOT NULL`,
		`i,
		CASE i % 4 WHEN 0 THEN 'Red' WHEN 1 THEN 'Green' WHEN 2 THEN 'Blue' ELSE 'Black' END || ' ' ||
		CASE i % 5 WHEN 0 THEN 'boot' WHEN 1 THEN 'shoe' WHEN 2 THEN 'sandal' WHEN 3 THEN 'slipper' ELSE 'clog' END || ' ' || i,
		CASE i % 5 WHEN 0 THEN 'boots' WHEN 1 THEN 'shoes' WHEN 2 THEN 'sandals' WHEN 3 THEN 'slippers' ELSE 'clogs' END,
		1000 + i * 37 % 9000`, products)
	return &store{db, table, takes, log}, err
}

// Product reads a product, or returns sql.ErrNoRows.
func (s *store) Product(ctx context.Context, id int64) (Product, error) {
	found, err := s.read(ctx, `id = $1`, id)
	if err == nil && len(found) == 0 {
		return Product{}, sql.ErrNoRows
	}
	return append(found, Product{})[0], err
}

// Products reads several products in one query. Those that are not there are missing in the result.
func (s *store) Products(ctx context.Context, ids []int64) (map[int64]Product, error) {
	numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]") // nothing to escape
	found, err := s.read(ctx, `id IN (`+numbers+`)`)
	byID := make(map[int64]Product, len(found))
	for _, p := range found {
		byID[p.ID] = p
	}
	return byID, err
}

// InCategory lists the products of a category, or returns sql.ErrNoRows if it has none.
func (s *store) InCategory(ctx context.Context, category string) ([]int64, error) {
	found, err := s.read(ctx, `category = $1 ORDER BY id LIMIT 100`, category)
	if err == nil && len(found) == 0 {
		return nil, sql.ErrNoRows
	}
	return idsOf(found), err
}

// Search lists products whose name contains the words, which are in lower case.
func (s *store) Search(ctx context.Context, words string) ([]int64, error) {
	pattern := "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(words) + "%"
	found, err := s.read(ctx, `LOWER(name) LIKE $1 ESCAPE '!' ORDER BY id LIMIT 50`, pattern)
	return idsOf(found), err
}

// Save adds a product, or replaces the one that has its number.
func (s *store) Save(ctx context.Context, p Product) error {
	_, err := s.db.Writer.ExecContext(s.asked(ctx, "save", p.ID),
		`INSERT INTO `+s.table+` (id, name, category, cents) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, category = excluded.category, cents = excluded.cents`,
		p.ID, p.Name, p.Category, p.Cents)
	return err
}

// SetPrice changes a price, and returns the product as it is then, or sql.ErrNoRows.
func (s *store) SetPrice(ctx context.Context, id int64, cents int) (p Product, err error) {
	err = s.db.Writer.QueryRowContext(s.asked(ctx, "set price", id),
		`UPDATE `+s.table+` SET cents = $2 WHERE id = $1 RETURNING id, name, category, cents`, id, cents).
		Scan(&p.ID, &p.Name, &p.Category, &p.Cents)
	return p, err
}

// Discount lowers all prices of a category.
func (s *store) Discount(ctx context.Context, category string, percent int) error {
	_, err := s.db.Writer.ExecContext(s.asked(ctx, "discount", category),
		`UPDATE `+s.table+` SET cents = cents * $2 / 100 WHERE category = $1`, category, 100-percent)
	return err
}

// Delete deletes a product.
func (s *store) Delete(ctx context.Context, id int64) error {
	_, err := s.db.Writer.ExecContext(s.asked(ctx, "delete", id), `DELETE FROM `+s.table+` WHERE id = $1`, id)
	return err
}

func (s *store) read(ctx context.Context, which string, args ...any) (found []Product, err error) {
	rows, err := s.db.QueryContext(s.asked(ctx, "SELECT … WHERE "+which, args...),
		`SELECT id, name, category, cents FROM `+s.table+` WHERE `+which, args...)
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

// asked logs a query, and takes the time that it takes.
func (s *store) asked(ctx context.Context, what string, args ...any) context.Context {
	s.log.InfoContext(ctx, "query", "sql", what, "args", args)
	program.Pause(ctx, s.takes) // when ctx ends, the query says so
	return ctx
}

func idsOf(list []Product) []int64 {
	ids := make([]int64, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	return ids
}
