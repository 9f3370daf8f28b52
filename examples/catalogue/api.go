package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
)

// api is the handlers.
type api struct{ *catalogue }

func (a *api) routes(r chi.Router) {
	r.Get("/products/{id}", a.answer(byID(a.product)))
	r.Put("/products/{id}", a.answer(byID(a.save)))
	r.Put("/products/{id}/price", a.answer(byID(a.price)))
	r.Delete("/products/{id}", a.answer(byID(a.delete)))
	r.Get("/categories/{category}", a.answer(a.category))
	r.Post("/categories/{category}/discount", a.answer(a.discount))
	r.Get("/cart", a.answer(a.cart))
	r.Get("/search", a.answer(a.search))
}

func (a *api) product(r *http.Request, id int64) (any, error) { return a.Product(r.Context(), id) }

func (a *api) delete(r *http.Request, id int64) (any, error) { return nil, a.Delete(r.Context(), id) }

func (a *api) category(r *http.Request) (any, error) {
	return a.InCategory(r.Context(), chi.URLParam(r, "category"))
}

// search gives the same words one spelling, as they are the key of an entry.
func (a *api) search(r *http.Request) (any, error) {
	words := strings.ToLower(strings.Join(strings.Fields(r.FormValue("q")), " "))
	if len(words) < 3 || len(words) > 50 {
		return nil, badRequest("q: give between 3 and 50 letters")
	}
	return a.Search(r.Context(), words)
}

// cart is what a cart shows: its products, and what they cost together.
func (a *api) cart(r *http.Request) (any, error) {
	var ids []int64
	for text := range strings.SplitSeq(r.FormValue("ids"), ",") {
		id, err := idOf(text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) > 100 {
		return nil, badRequest("ids: a cart has at most 100 products")
	}
	all, err := a.All(r.Context(), ids)
	cart := struct {
		Products []Product `json:"products"`
		Cents    int       `json:"cents"`
	}{Products: all}
	for _, p := range all {
		cart.Cents += p.Cents
	}
	return cart, err
}

func (a *api) save(r *http.Request, id int64) (any, error) {
	var p Product
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&p); err != nil {
		return nil, badRequest(err.Error())
	}
	p.ID = id
	if p.Name == "" || p.Category == "" || len(p.Name)+len(p.Category) > 200 || p.Cents < 0 || p.Cents > maxCents {
		return nil, badRequest("a product has a name, a category, and cents")
	}
	return p, a.Save(r.Context(), p)
}

func (a *api) price(r *http.Request, id int64) (any, error) {
	cents, err := strconv.Atoi(r.FormValue("cents"))
	if err != nil || cents < 0 || cents > maxCents {
		return nil, badRequest("cents: give a price")
	}
	return nil, a.SetPrice(r.Context(), id, cents)
}

func (a *api) discount(r *http.Request) (any, error) {
	percent, err := strconv.Atoi(r.FormValue("percent"))
	if err != nil || percent < 1 || percent > 90 {
		return nil, badRequest("percent: give 1 to 90")
	}
	return nil, a.Discount(r.Context(), chi.URLParam(r, "category"), percent)
}

const maxCents = 10_000_000 // so that a percentage of it fits into an integer of the database

// badRequest is an error of the client.
type badRequest string

func (e badRequest) Error() string { return string(e) }

func idOf(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, badRequest(fmt.Sprintf("%.40q is no number of a product", text))
	}
	return id, nil
}

// byID is for handlers of a product.
func byID(of func(*http.Request, int64) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := idOf(chi.URLParam(r, "id"))
		if err != nil {
			return nil, err
		}
		return of(r, id)
	}
}

// answer makes a handler of what returns a value for JSON, nil for none, or an error.
func (a *api) answer(of func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		what, err := of(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if what == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what) // the client has left
	}
}

// fail says what an error means to the client: whose fault it is, and whether it helps to try again.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	_, wrong := errors.AsType[badRequest](err)
	switch class := cacheguard.ClassOf(err, sql.ErrNoRows); {
	case wrong:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case class == cacheguard.ClassAbsent:
		http.Error(w, "there is none", http.StatusNotFound)
	case class == cacheguard.ClassCommitted: // it is written, and the Guard goes on telling Redis
		w.WriteHeader(http.StatusNoContent)
	case class == cacheguard.ClassUnavailable:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case class == cacheguard.ClassCanceled: // nobody knows whether a POST was made: if it was, a repeated discount would be given twice
		http.Error(w, "it took too long", http.StatusGatewayTimeout)
	default:
		a.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}
