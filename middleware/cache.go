package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/errs"
	"github.com/cacheguard/go/internal/run/logging"
	"github.com/cacheguard/go/internal/watch/observe"
	"github.com/cacheguard/go/middleware/internal/cachestatus"
	"github.com/cacheguard/go/middleware/internal/canonical"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/rules"
	"github.com/cacheguard/go/middleware/internal/sliced"
)

// Cache stores responses of a handler. It is safe for concurrent use. It needs no Close: its background work belongs to the Guard.
type Cache struct {
	cfg      Config
	guard    *cacheguard.Guard
	names    *canonical.Namer
	rules    *rules.Settings
	slices   *sliced.Store
	limits   *limits
	search   canonical.Searches
	decoded  *record.Recent
	clock    clock.Clock // that pages age by
	hidden   []string    // Config.HideFields
	prefixes []string    // Config.Prefixes
	hits     *cachestatus.Hits
	panics   logging.Throttle
	tagged   atomic.Bool           // there are pages with tags
	warms    atomic.Bool           // Warm has been called
	seen     atomic.Pointer[tally] // for package admin; nil: nobody looks
}

// warmed is the key of what a context says: the request is one of Warm's.
type warmed struct{ by *Cache }

// New returns a Cache that stores its responses in the Guard. The error names every field of cfg that is out of range.
//
// Caches that share a Guard and a Space share their pages, so routes may have Caches with settings of their own.
//
// The settings of the Guard apply to pages, but for TTL, StaleFor, EarlyRefresh, NegativeTTL and Codec, and for MaxLoads and Limiter
// without Config.LimitLoads. LoadTimeout is how long a handler may take for a response that is to be stored.
func New(guard *cacheguard.Guard, cfg Config) (*Cache, error) {
	err := cfg.check()
	if guard == nil {
		err = errors.Join(errors.New("guard is nil"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	cfg = cfg.withDefaults()
	of, _ := observe.Look[observe.Guard](guard)
	cfg.Logger = logging.Of(cfg.Logger, of.Prefix, of.Instance)
	c := &Cache{cfg: cfg, guard: guard, names: canonical.New(cfg.identity()), rules: cfg.rules(), limits: newLimits(cfg.Limits), decoded: record.NewRecent(), clock: clock.Of(guard), hidden: rules.Names(cfg.HideFields), hits: cachestatus.NewHits(cfg.Name)}
	for _, prefix := range cfg.Prefixes {
		c.prefixes = append(c.prefixes, unescapedPath(prefix))
	}
	c.slices = &sliced.Store{
		Guard: guard, Names: c.names, Rules: c.rules, Size: cfg.SliceBytes, Unlimited: !cfg.LimitLoads, LogPanic: c.logPanic,
		Clock: c.clock,
	}
	return c, nil
}

func (c *Cache) logPanic(ctx context.Context, path string, panicked any, stack []byte) {
	c.panics.Log(ctx, c.cfg.Logger, slog.LevelError, "middleware: handler panicked", "", "path", errs.Short(path), "panic", panicked, "stack", string(stack))
}
