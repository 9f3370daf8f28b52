package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/invalidate"
	whyoff "github.com/cacheguard/go/internal/cache/off"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/run/errs"
)

// Invalidate removes the keys from the cache, and keeps every running load, on every instance, from storing what it
// has read. Call it after you have written to the source. A Get that begins after Invalidate returned nil, in any
// process, never returns a value that was loaded before.
//
// Invalidate sends the invalidations, and waits for the answer, even if ctx has ended, because the source has been written by then. RedisTimeout
// bounds the wait.
//
// The error joins a *RedisError for each key that Redis may not have removed: after RedisTimeout, or at once while the circuit breaker is
// open (Config.RedisTimeout). The invalidations of such keys are pending, up to
// 100,000 of them: the Guard sends them again in the background until they succeed or the Guard is closed, and loads the keys
// without the cache until then. Other instances may go on serving their values.
//
// With Config.Replicas, the same goes for keys that too few replicas have acknowledged; their errors match ErrNotReplicated. The primary
// has removed such a key, so other instances serve it again only if a failover forgets that before the invalidation is repeated.
//
// A key that is not in the cache is not an error. An empty key is one; the other keys are invalidated all the same.
func (g *Guard) Invalidate(ctx context.Context, keys ...string) error {
	if g == nil {
		return errNilGuard
	}
	named := make([]string, 0, len(keys))
	for _, key := range keys {
		if key != "" {
			named = append(named, key)
		}
	}
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
	g.named(named, nil)
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskInvalidate, named)
	err := errs.Join(refused, g.send(ctx, &g.invalidations, named))
	end(End{Err: err})
	return err
}

// send sends invalidations. A disabled Guard has nobody to send them to.
func (g *Guard) send(ctx context.Context, s *invalidate.Sender, keys []string) error {
	if g.cfg.Disabled {
		g.process.Overtake()
		return nil
	}
	return s.Send(ctx, keys)
}

// openInvalidations makes what sends them.
func (g *Guard) openInvalidations() {
	w := &invalidate.Writer{
		Link: g.link, Replicas: g.cfg.Replicas, Breakers: g.breakers,
		Life: g.life, Journal: &g.journal, Notices: g.notices, Owner: (*invalidating)(g),
	}
	g.invalidations.OpenKeys(w, &g.keys)
	g.invalidations.AreAny = func(some bool) { g.off.Put(whyoff.Pending, some) }
	g.ofEpochs.OpenEpochs(w, g.epochs)
}

// invalidating is a Guard as its invalidate.Writer sees it.
type invalidating Guard

func (w *invalidating) Local() *tier.Local { return w.local }

func (w *invalidating) Failed(op, key string, err error) error {
	return (*Guard)(w).redisError(op, key, err)
}

func (w *invalidating) Untold(op, key string, err error) error {
	return &RedisError{Op: op, Key: key, Err: err}
}

// InvalidateTags is Invalidate for all entries with one of the tags, including those being loaded. It takes a round trip, however many
// there are.
//
// A Get that begins after InvalidateTags returned nil, in any process, never returns a value with one of the tags that was loaded
// before. As with Invalidate, the request is sent, and answered, even if ctx has ended. If it fails, it is pending, and until it succeeds the
// Guard does not serve entries with the tag. The Key of the *RedisError is the tag.
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
	g.named(nil, tags)
	return errs.Join(refused, g.invalidateNames(ctx, names))
}

// InvalidateAll is Invalidate for all keys under the Prefix, of all Guards. It takes a round trip, however many there are. The Key of the
// *RedisError is empty.
func (g *Guard) InvalidateAll(ctx context.Context) error {
	return g.invalidateNames(ctx, []string{epoch.All})
}

// invalidateNames ends the epochs of the names, in each part of the keyspace.
func (g *Guard) invalidateNames(ctx context.Context, names []string) error {
	if g == nil {
		return errNilGuard
	}
	if !g.life.Begin() {
		return ErrClosed
	}
	defer g.life.Done()
	return g.send(ctx, &g.ofEpochs.Sender, g.ofEpochs.InAllParts(names))
}
