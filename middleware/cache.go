package middleware

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/cacheguard/go/cacheguard"
)

// Cache stores responses of a handler. It is safe for concurrent use. It has nothing to close: what runs in the background
// belongs to the Guard.
type Cache struct {
	guard *cacheguard.Guard
	cfg   Config

	decoded decodings
}

// New returns a Cache that keeps its responses in the Guard. The error names every field of cfg that is out of range.
//
// Caches that share a Guard and a Space share its pages, so that routes may have Caches with settings of their own. The Guard's
// TTL, StaleFor, EarlyRefresh and Codec do not count for pages. Its Prefix, Local, MaxValueBytes, LoadTimeout (how long a handler
// may take for a response that is to be stored), WaitTimeout, FailClosed and Hooks do, and MaxLoads with Config.LimitLoads.
func New(guard *cacheguard.Guard, cfg Config) (*Cache, error) {
	err := cfg.check()
	if guard == nil {
		err = errors.Join(errors.New("guard is nil"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	return &Cache{guard: guard, cfg: cfg.withDefaults(), decoded: decodings{seed: maphash.MakeSeed()}}, nil
}

// Handler puts the Cache in front of next. It is a middleware as chi's Use takes it. Middlewares that decide by who asks
// (authentication), or that add to each response what is not to be shared, belong in front of it; those that compress, behind
// it. Next may run after its request was answered, and is called by GET for a HEAD: routers that use their contexts again (gin,
// Echo), or that choose by the method, belong behind the Cache as a whole. (Of chi and http.ServeMux it knows enough.)
func (c *Cache) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{cache: c, w: w, r: r, next: next}
		if c.cfg.OnResponse != nil {
			x.began = time.Now()
			defer x.report()
		}
		x.serve()
	})
}
