package cacheguard

import (
	"context"
	"errors"

	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/config"
)

// openWrites makes what invalidates, announces and updates.
func (g *Guard) openWrites() (err error) {
	cfg := write.Config{
		Timeout: g.cfg.UpdateTimeout, Anyway: g.cfg.UpdateAnyway, Replicas: g.cfg.Replicas,
		Logger: g.cfg.Logger, Closed: ErrClosed, Keys: &g.keys, Epochs: g.epochs, Link: g.link, Breakers: g.breakers, Keeper: g.keeper, Life: g.life,
		Journal: &g.journal, Notices: g.notices, WriteLock: g.cfg.WriteLock, Owner: (*writer)(g),
	}
	if goredis.CheckOnePlace(g.rdb) == nil { // else Update refuses
		g.locks, err = rw.New("rwlock", g.rdb, config.Lock{
			Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, TTL: g.cfg.LeaseTTL, MaxHold: g.cfg.UpdateTimeout, RedisTimeout: g.cfg.RedisTimeout,
			Replicas: g.cfg.Replicas,
		})
		cfg.Locks = g.locks
	}
	g.writes.Open(cfg)
	return err
}

// writer is a Guard as its writes see it.
type writer Guard

func (w *writer) Local() *tier.Local { return w.local }
func (w *writer) Named(ctx context.Context, keys, tags []string) {
	(*Guard)(w).named(ctx, keys, tags)
}
func (w *writer) ArePending(keys bool)                   { w.off.Put(whyoff.Pending, keys) }
func (w *writer) AreIntended(some bool)                  { w.off.Put(whyoff.Intents, some) }
func (w *writer) Failed(op, key string, err error) error { return (*Guard)(w).redisError(op, key, err) }
func (w *writer) Untold(op, key string, err error) error {
	return &RedisError{Op: op, Key: key, Err: err}
}

func (w *writer) IsFailed(err error) bool {
	return errors.As(err, new(*RedisError))
}
