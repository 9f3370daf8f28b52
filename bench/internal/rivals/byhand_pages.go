package rivals

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// handPages is what one writes without a library: GET, else the handler and SET. Of a page it keeps the body alone.
var handPages = CacheLibrary{
	Name: "GET + SET by hand", Kind: Shared, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) {
		c := hand{s.client(), s}
		return &site{
			handler: routed(c.through(s.origin)), close: c.Close,
			invalidate: func(ctx context.Context, r *http.Request) error { return c.Invalidate(ctx, r.URL.Path[len(path):]) },
		}, nil
	},
}

func (c hand) through(origin http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, err := c.Get(r.Context(), chi.URLParam(r, "id"), func(context.Context) ([]byte, error) {
			made := answer{header: make(http.Header)}
			origin(&made, r)
			return made.page(r.URL.Path)
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(page) // a client that does not get it fails for that
	}
}
