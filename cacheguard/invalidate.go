package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/script"
)

// maxInvalidations bounds one pipeline.
const maxInvalidations = 256

// Invalidate removes the keys from the cache, and kills the right of every running load to store what it has read, on
// every instance. Call it after the source was written. A Get that begins after Invalidate returned nil, in any
// process, never returns a value that was loaded before.
//
// The invalidation is sent even when ctx has ended, since the source has been written by then; ctx only ends the
// caller's wait, with an error that matches its cause. An error is one *RedisError for each key that may not have been
// removed, joined. Such keys are owed (at most 100,000 of them): they are invalidated again in the background, until that
// succeeds or the Guard is closed, and meanwhile this Guard loads them without the cache. Other instances may go on
// serving their values until then. Invalidating a key that is not there is no error; an empty key is one, and the other
// keys are invalidated all the same.
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
	if !g.begin() {
		return ErrClosed
	}
	defer g.tasks.Done()
	return errors.Join(refused, g.invalidate(ctx, named))
}

// invalidate sends the invalidations without holding the caller beyond its context.
func (g *Guard) invalidate(ctx context.Context, keys []string) error {
	done := make(chan error, 1)
	g.tasks.Go(func() { // owner: the Guard; stop: RedisTimeout for each batch; joined by Close
		done <- errors.Join(g.invalidateAll(ctx, keys)...)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: invalidate: still under way: %w", context.Cause(ctx))
	}
}

// invalidateAll sends the invalidations of each part of the keyspace for itself, as its nodes fail for themselves.
func (g *Guard) invalidateAll(ctx context.Context, keys []string) (errs []error) {
	parts := g.byPart(keys)
	failed := make([][]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts[1:] {
		all.Go(func() { failed[i+1] = g.invalidatePart(ctx, part) })
	}
	failed[0] = g.invalidatePart(ctx, parts[0])
	all.Wait()
	return slices.Concat(failed...)
}

// byPart returns the keys by the part of the keyspace that they belong to, without empty parts.
func (g *Guard) byPart(keys []string) [][]string {
	if g.health.Len() == 1 {
		return [][]string{keys}
	}
	parts := make([][]string, g.health.Len())
	for _, key := range keys {
		i := g.partOf(key)
		parts[i] = append(parts[i], key)
	}
	return slices.DeleteFunc(parts, func(part []string) bool { return len(part) == 0 })
}

// invalidatePart sends the invalidations in batches. When Redis answers to nothing of a batch, the rest is not tried.
func (g *Guard) invalidatePart(ctx context.Context, keys []string) (errs []error) {
	for len(keys) > 0 {
		batch := keys[:min(len(keys), maxInvalidations)]
		failed := g.forgetPart(ctx, "invalidate", batch, g.invalidation)
		if first := failed[batch[0]]; len(failed) == len(batch) && health.Unavailable(first.Err) {
			for _, key := range keys[len(batch):] {
				failed[key] = &RedisError{Op: first.Op, Key: key, Err: first.Err}
			}
			batch = keys
		}
		errs = append(errs, g.oweFailed(batch, failed)...)
		keys = keys[len(batch):]
	}
	return errs
}

// oweFailed returns the errors of the keys that failed, which are owed from now on.
func (g *Guard) oweFailed(keys []string, failed map[string]*RedisError) (errs []error) {
	var owed []string
	for _, key := range keys {
		if err := failed[key]; err != nil {
			errs = append(errs, err)
			owed = append(owed, key)
		}
	}
	if len(owed) > 0 {
		g.owe(owed)
	}
	return errs
}

// forget runs a call that removes its key for each of the keys, for each part of the keyspace in a pipeline of its own,
// and returns the errors by key.
func (g *Guard) forget(ctx context.Context, op string, keys []string, call func(string) *script.Call) map[string]*RedisError {
	parts := g.byPart(keys)
	failed := make([]map[string]*RedisError, len(parts))
	var all sync.WaitGroup
	for i, part := range parts[1:] {
		all.Go(func() { failed[i+1] = g.forgetPart(ctx, op, part, call) })
	}
	failed[0] = g.forgetPart(ctx, op, parts[0], call)
	all.Wait()
	for _, more := range failed[1:] {
		maps.Copy(failed[0], more)
	}
	return failed[0]
}

func (g *Guard) forgetPart(
	ctx context.Context, op string, keys []string, call func(string) *script.Call,
) map[string]*RedisError {
	calls := make([]*script.Call, len(keys))
	for i, key := range keys {
		calls[i] = call(key)
	}
	defer g.local.forget(keys) // whatever the reply, it is not known who has read what
	cmds, err := bounded(ctx, g, func(ctx context.Context) ([]*redis.Cmd, error) {
		return script.RunAll(ctx, g.rdb, calls), nil
	}, nil)
	failed := make(map[string]*RedisError)
	for i, key := range keys {
		reason := err
		if err == nil {
			reason = cmds[i].Err()
		}
		if reason != nil {
			g.health.Failed(reason)
			failed[key] = g.redisError(op, key, reason)
		}
	}
	return failed
}

// redisKey is the key in Redis of a value.
func (g *Guard) redisKey(key string) string { return g.keys.ValueKey(key) }

// beginUpdate is the call that announces a writer of the key.
func (g *Guard) beginUpdate(key, token string) *script.Call {
	return g.keys.BeginUpdate(g.redisKey(key), token, g.notice(key))
}

// endUpdate is the call that ends what beginUpdate began.
func (g *Guard) endUpdate(key, token string) *script.Call {
	return g.keys.EndUpdate(g.redisKey(key), token, g.notice(key))
}

// invalidation is the call that removes a key.
func (g *Guard) invalidation(key string) *script.Call {
	return g.keys.Invalidate(g.redisKey(key), g.notice(key))
}

// owedInvalidation is that of a key that is owed.
func (g *Guard) owedInvalidation(key string) *script.Call {
	return g.keys.Invalidate(g.redisKey(key), g.owed.noticeOf(key))
}

// notice is the next message to local tiers, that the key is to be forgotten.
func (g *Guard) notice(key string) string { return g.notices.Next(g.partOf(key), key) }
