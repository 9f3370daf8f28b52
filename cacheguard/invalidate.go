package cacheguard

import (
	"context"
	"errors"
	"slices"

	"github.com/cacheguard/go/internal/cache/epoch"
	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/errs"
)

// Invalidate removes the keys from the cache, and keeps every running load, on every instance, from storing what it has
// read. Call it after you have written to the source. A Get that begins after it returned nil, in any process, never
// returns a value that was loaded before. It is sent, and answered within RedisTimeout, even if ctx has ended.
//
// The error joins a *RedisError for each key that Redis, or with Config.Replicas too few replicas, may not have
// removed. Those are pending, up to 100,000: the Guard sends them again until they succeed or it is closed, and does
// not serve them until then, as other instances may. An empty key is an error; the others are invalidated. Values that
// are made of other cached ones come last: see docs/transactions.md.
func (g *Guard) Invalidate(ctx context.Context, keys ...string) error {
	if err := g.begin(); err != nil {
		return err
	}
	defer g.life.Done()
	named := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == "" })
	var refused error
	if len(named) < len(keys) {
		refused = errEmptyKey
	}
	if len(named) == 0 {
		return refused
	}
	g.named(ctx, named, nil)
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskInvalidate, named)
	err := errs.Join(refused, g.writes.Invalidate(ctx, named, nil))
	end(End{Err: err})
	return err
}

// InvalidateTags is Invalidate for all entries with one of the tags, including those being loaded, in a round trip. The
// Key of the *RedisError is a tag. An empty tag, and one of more than 512 bytes, is an error; the others are
// invalidated.
func (g *Guard) InvalidateTags(ctx context.Context, tags ...string) error {
	if g == nil {
		return errNilGuard
	}
	var names []string
	var refused error
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			refused = errs.Join(refused, err)
		} else {
			names = append(names, epoch.OfTag(tag))
		}
	}
	if len(names) == 0 {
		return refused
	}
	g.named(ctx, nil, tags)
	return errs.Join(refused, g.invalidateNames(ctx, names))
}

// InvalidateAll is Invalidate for all keys under the Prefix, of all Guards, in a round trip. The Key of the *RedisError
// is empty.
func (g *Guard) InvalidateAll(ctx context.Context) error {
	return g.invalidateNames(ctx, []string{epoch.All})
}

// invalidateNames ends the epochs of the names, in each part of the keyspace.
func (g *Guard) invalidateNames(ctx context.Context, names []string) error {
	if err := g.begin(); err != nil {
		return err
	}
	defer g.life.Done()
	return g.writes.Invalidate(ctx, nil, names)
}

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
