package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

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
	if errors.Is(err, sql.ErrNoRows) {
		http.Error(w, "there is none", http.StatusNotFound)
		return
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

func number(w http.ResponseWriter, s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		http.Error(w, fmt.Sprintf("%q is no number, or below 0", s), http.StatusBadRequest)
		return 0, false
	}
	return n, true
}
