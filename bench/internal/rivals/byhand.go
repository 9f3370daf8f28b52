package rivals

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"
)

// byHand is what one writes without a library: GET, load, SET, and DEL after a write. What Redis fails to answer is loaded,
// and what it fails to store will be loaded again. It serves nothing stale.
var byHand = CacheLibrary{
	Name: "GET + SET by hand", Kind: Shared, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) { return hand{s.universal(), s}, nil },
}

type hand struct {
	redis.UniversalClient
	setup Setup
}

func (c hand) Get(ctx context.Context, key string, load Loader) ([]byte, error) {
	got, err := c.UniversalClient.Get(ctx, key).Bytes()
	if err != nil {
		if got, err = load(ctx); err == nil {
			_ = c.Set(ctx, key, got, c.setup.jittered()).Err() // see above
		}
	}
	return got, err
}

// jittered is a TTL for the libraries that are told one with each value and have no jitter of their own.
func (s Setup) jittered() time.Duration {
	return s.TTL - time.Duration(rand.Float64()*s.Jitter*float64(s.TTL))
}

func (c hand) Invalidate(ctx context.Context, key string) error { return c.Del(ctx, key).Err() }

// handPages is what one writes without a library: GET, else the handler and SET. Of a page it keeps the body alone.
var handPages = CacheLibrary{
	Name: "GET + SET by hand", Kind: Shared, Promise: NoPromise,
	Open: func(s Setup) (Cache, error) {
		c := hand{s.universal(), s}
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
