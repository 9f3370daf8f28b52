package cacheguard

import (
	"context"
	"slices"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/run/errs"
)

// Invalidate removes the keys from the cache, and keeps every running load, on every instance, from storing what it
// has read. Call it after you have written to the source. A Get that begins after Invalidate returned nil, in any
// process, never returns a value that was loaded before. It is sent, and answered, even if ctx has ended; RedisTimeout
// bounds the wait.
//
// The error joins a *RedisError for each key that Redis may not have removed, or, with Config.Replicas, that too few
// replicas have acknowledged. Those are pending, up to 100,000 of them: the Guard sends them again in the background
// until they succeed or it is closed, and loads the keys without the cache until then. Other instances may go on
// serving them.
//
// All keys end at once. Where values are made of other cached ones, two calls end those first; Intend keeps the order
// even where Redis does not acknowledge the first. An empty key is an error; the other keys are invalidated all the
// same.
func (g *Guard) Invalidate(ctx context.Context, keys ...string) error {
	if g == nil {
		return errNilGuard
	}
	named := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == "" })
	var refused error
	if len(named) < len(keys) {
		refused = errEmptyKey
	}
	if len(named) == 0 {
		return refused
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	g.named(ctx, named, nil)
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskInvalidate, named)
	err := errs.Join(refused, g.writes.Invalidate(ctx, named, nil))
	end(End{Err: err})
	return err
}

// InvalidateTags is Invalidate for all entries with one of the tags, including those being loaded. It takes a round
// trip, however many there are. While it is pending, the Guard does not serve entries with the tag, which is the Key of
// the *RedisError. Of two calls, for tags and for keys, the one for what is made of other values comes last.
//
// An empty tag, and one of more than 512 bytes, is an error; the others are invalidated all the same.
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

// InvalidateAll is Invalidate for all keys under the Prefix, of all Guards. It takes a round trip, however many there
// are. On a cluster, where values are made of other cached ones, call it twice: nothing orders the nodes. The Key of
// the *RedisError is empty.
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
