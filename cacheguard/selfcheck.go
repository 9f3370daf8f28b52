package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/watch/selfcheck"
)

// SelfCheck checks, when a service starts, that Redis can be reached, that its user has the rights of docs/redis.md,
// that the scripts do what they should, and that messages arrive. It takes until ctx ends, or 10 seconds without a
// deadline, and does not wait for Redis to recover. The error names what was refused, or says that Redis is slow.
func (g *Guard) SelfCheck(ctx context.Context) error {
	if err := g.begin(); err != nil {
		return err
	}
	defer g.life.Done()
	return g.checks().Report(ctx, g.cfg.Logger, g.oneWriter(), ErrClosed)
}

func (g *Guard) checks() *selfcheck.Checks {
	c := &selfcheck.Checks{
		Redis: g.rdb, Timeout: g.cfg.RedisTimeout, Life: g.life, Keys: g.keys, Inbox: g.inbox, Link: g.link, Epochs: g.epochs,
		Channels: []string{g.inbox.Channel(), g.notices.Channel}, Notice: g.writes.Notice, Invalidate: g.writes.InvalidateOnce,
		Lock: func(ctx context.Context, key string) error {
			if g.locks == nil {
				return nil // on a Ring, where Update has none
			}
			return g.locks.Do(ctx, key, func(context.Context) error { return nil })
		},
	}
	if g.local != nil {
		c.Local, c.Echoes = true, g.local.NeedsEchoes()
	}
	return c
}
