package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/middleware"
)

// The patterns of the routes, which are labels of the metrics too.
const (
	productRoute  = "/products/{id}"
	categoryRoute = "/categories/{id}"
)

// Pages keep expiring while one looks. Nobody waits for the next one, as the old one may be served meanwhile.
const (
	freshFor = time.Second
	staleFor = 10 * time.Second
)

// api is the handlers. The headers that they set make their pages cacheable.
type api struct {
	shop  *shop
	calls *calls
	pages *middleware.Cache // nil: uncached
}

// routes adds the API to r.
func (a *api) routes(r chi.Router) {
	if a.pages != nil {
		r.Use(a.pages.Handler)
	}
	r.Get(productRoute, a.counted(a.product))
	r.Get(categoryRoute, a.counted(a.category))
	r.Put(productRoute, a.setPrice)
}

func (a *api) product(w http.ResponseWriter, r *http.Request) {
	id, ok := number(w, chi.URLParam(r, "id"))
	if !ok {
		return
	}
	p, err := a.shop.product(r.Context(), id)
	answer(w, p, err, productTag(id))
}

func (a *api) category(w http.ResponseWriter, r *http.Request) {
	id, ok := number(w, chi.URLParam(r, "id"))
	if !ok {
		return
	}
	list, err := a.shop.category(r.Context(), id)
	answer(w, list, err, categoryTag(id))
}

// setPrice is what invalidation takes: the tags of the pages that show what has changed, when it has changed.
func (a *api) setPrice(w http.ResponseWriter, r *http.Request) {
	id, ok := number(w, chi.URLParam(r, "id"))
	if !ok {
		return
	}
	cents, ok := number(w, r.FormValue("cents"))
	if !ok {
		return
	}
	category, err := a.shop.setPrice(r.Context(), id, cents)
	if err == nil && a.pages != nil {
		ctx := context.WithoutCancel(r.Context()) // the price has changed, whether or not anybody still listens
		err = a.pages.InvalidateTags(ctx, productTag(id), categoryTag(category))
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// One function for each tag, so that reads and writes cannot disagree about it.
func productTag(id int) string  { return fmt.Sprintf("product-%d", id) }
func categoryTag(id int) string { return fmt.Sprintf("category-%d", id) }

func answer(w http.ResponseWriter, what any, err error, tag string) {
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d, stale-while-revalidate=%d", freshFor/time.Second, staleFor/time.Second))
	w.Header().Set("Cache-Tag", tag)
	_ = json.NewEncoder(w).Encode(what) // the client has left
}

func fail(w http.ResponseWriter, err error) {
	switch cacheguard.ClassOf(err, sql.ErrNoRows) {
	case cacheguard.ClassAbsent: // the database's own word
		http.Error(w, "there is none", http.StatusNotFound)
	case cacheguard.ClassCommitted: // the price has changed, and the Guard goes on telling Redis
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

func number(w http.ResponseWriter, s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		http.Error(w, fmt.Sprintf("%q is no number, or below 0", s), http.StatusBadRequest)
		return 0, false
	}
	return n, true
}

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
