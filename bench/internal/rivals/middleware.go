package rivals

import (
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// middlewareShared is the middleware without a local tier, with its defaults.
var middlewareShared = CacheLibrary{
	Name: "middleware", Ours: true, Kind: Shared, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openMiddleware(s, cacheguard.LocalConfig{}) },
}

// middlewareLocal has room for all pages in the process's memory.
var middlewareLocal = CacheLibrary{
	Name: "middleware, local tier", Ours: true, Kind: Local, Promise: OnePerFleet, Inboxes: true,
	Open: func(s Setup) (Cache, error) { return openMiddleware(s, s.local()) },
}

func openMiddleware(s Setup, local cacheguard.LocalConfig) (Cache, error) {
	g, err := openGuard(s, local)
	if err != nil {
		return nil, err
	}
	cache, err := middleware.New(g.(guarded).Guard, middleware.Config{})
	if err != nil {
		_ = g.Close() // nobody has used it
		return nil, err
	}
	return &site{handler: routed(s.origin, cache.Handler), invalidate: cache.Invalidate, close: g.Close}, nil
}
