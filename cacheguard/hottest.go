package cacheguard

import (
	"context"
	"fmt"

	"github.com/cacheguard/go/internal/cache/hottest"
)

// mostHottest is how many keys a Guard may tell the fleet at a time.
const mostHottest = 1000

// Hottest returns the keys that the Guards of the Prefix were asked for most in the last five to ten minutes, the first
// most; n of them, or fewer if there are not so many. It is for Cache.Warm: what callers will want is what they wanted
// before. Only Guards with Config.Hottest count, also closed ones. The ranks are an estimate.
//
// From 1 to 10,000 keys; it takes a round trip. The error is a *RedisError if Redis did not answer. A disabled Guard
// knows of none.
func (g *Guard) Hottest(ctx context.Context, n int) ([]string, error) {
	switch {
	case g == nil:
		return nil, errNilGuard
	case n < 1 || n > hottest.Most:
		return nil, fmt.Errorf("cacheguard: hottest: %d is not between 1 and %d", n, hottest.Most)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("cacheguard: hottest: %w", context.Cause(ctx))
	case !g.life.Begin():
		return nil, ErrClosed
	}
	defer g.life.Done()
	if g.cfg.Disabled {
		return nil, nil
	}
	top, err := g.hottest.Top(ctx, n)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("cacheguard: hottest: %w", context.Cause(ctx))
	case err != nil:
		return nil, &RedisError{Op: "hottest", Key: g.cfg.Prefix, Err: err}
	}
	return top, nil
}

// newHottest makes the counters of the Guard.
func (g *Guard) newHottest() *hottest.Keys {
	counts := g.cfg.Hottest
	if g.cfg.Disabled {
		counts = 0
	}
	return hottest.New(hottest.Config{
		Redis: g.rdb, Prefix: g.cfg.Prefix, Timeout: g.cfg.RedisTimeout, Life: g.life, Keys: counts, Every: hottest.Every,
	})
}
