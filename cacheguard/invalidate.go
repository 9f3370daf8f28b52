package cacheguard

import (
	"context"
	"slices"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/run/errs"
)

// Invalidate removes the keys from the cache, and keeps every running load, on every instance, from storing what it
// has read. Call it after you have written to the source. A Get that begins after Invalidate returned nil, in any
// process, never returns a value that was loaded before.
//
// Invalidate sends the invalidations, and waits for the answer, even if ctx has ended, because the source has been
// written by then. RedisTimeout bounds the wait.
//
// The error joins a *RedisError for each key that Redis may not have removed: after RedisTimeout, or at once while the
// circuit breaker is open (Config.RedisTimeout). The invalidations of such keys are pending, up to 100,000 of them: the
// Guard sends them again in the background until they succeed or the Guard is closed, and loads the keys without the
// cache until then. Other instances may go on serving their values.
//
// With Config.Replicas, the same goes for keys that too few replicas have acknowledged; their errors match
// ErrNotReplicated. The primary has removed such a key, so other instances serve it again only if a failover forgets
// that before the invalidation is repeated.
//
// All keys end at once. Where values are made of other cached ones, as views of products, two calls end the products
// first: what is pending of them is sent again in their order. Intend keeps the order even where Redis does not
// acknowledge the first.
//
// A key that is not in the cache is not an error. An empty key is one; the other keys are invalidated all the same.
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
// trip, however many there are.
//
// A Get that begins after InvalidateTags returned nil, in any process, never returns a value with one of the tags that
// was loaded before. As with Invalidate, the request is sent, and answered, even if ctx has ended. If it fails, it is
// pending, and until it succeeds the Guard does not serve entries with the tag. The Key of the *RedisError is the tag.
//
// Of two calls, for tags and for keys, the one for what is made of other values comes last, or a load in between makes
// it of old ones. If the first returns an error, only Intend with both, and Done at once, keep the order.
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
