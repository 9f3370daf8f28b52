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

// maxInvalidations bounds one pipeline. Redis takes some 10 µs for each, and other clients come in between.
const maxInvalidations = 1024

// Invalidate removes the keys from the cache, and keeps every running load, on every instance, from storing what it
// has read. Call it after you have written to the source. A Get that begins after Invalidate returned nil, in any
// process, never returns a value that was loaded before.
//
// Invalidate sends the invalidations even if ctx has ended, because the source has been written by then. The end of ctx only
// ends the caller's wait, with an error that matches its cause.
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
	ctx, end := g.cfg.Hooks.beginMany(ctx, TaskInvalidate, named)
	err := errors.Join(refused, g.invalidations.send(ctx, named))
	end(End{Err: err})
	return err
}

// invalidations sends the invalidations of a Guard, and repeats those that failed.
type invalidations struct {
	guard   *Guard
	pending pendingInvalidations

	part        func(key string) int                  // of the keyspace
	call        func(key, notice string) *script.Call // that removes it
	message     func(key string) string               // the next notice of it
	forgetLocal func(keys []string)                   // makes the local tier forget
	shown       func(key string) string               // as errors have it

	steps func(key, notice string) [][]*script.Call // that do what the call does, one key each
}

// ofKeys are the invalidations of keys.
func ofKeys(g *Guard) invalidations {
	return invalidations{
		guard: g,
		part:  g.partOf,
		call: func(key, notice string) *script.Call {
			return g.keys.Invalidate(g.keys.ValueKey(key), notice)
		},
		message:     func(key string) string { return g.notices.Next(g.partOf(key), key) },
		forgetLocal: func(keys []string) { g.local.Forget(keys...) },
		shown:       func(key string) string { return key },
		steps: func(key, notice string) [][]*script.Call {
			return g.keys.InvalidateInSteps(g.keys.ValueKey(key), notice)
		},
	}
}

// send sends the invalidations, but does not hold the caller beyond its context.
func (i *invalidations) send(ctx context.Context, keys []string) error {
	if i.guard.cfg.Disabled {
		i.guard.process.Overtake()
		return nil
	}
	done := make(chan error, 1)
	i.guard.life.Go(func() { // owner: the Guard; stop: RedisTimeout for each chunk; joined by Close
		done <- errors.Join(i.sendAll(ctx, keys)...)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cacheguard: invalidate: still under way: %w", context.Cause(ctx))
	}
}

// sendAll sends the invalidations of each part of the keyspace separately, as parts fail separately.
func (i *invalidations) sendAll(ctx context.Context, keys []string) (errs []error) {
	parts := i.byPart(keys)
	failed := make([][]error, len(parts))
	var all sync.WaitGroup
	for n, part := range parts[1:] {
		all.Go(func() { failed[n+1] = i.sendPart(ctx, part) })
	}
	failed[0] = i.sendPart(ctx, parts[0])
	all.Wait()
	return slices.Concat(failed...)
}

// byPart groups the keys by their part of the keyspace, without empty parts.
func (i *invalidations) byPart(keys []string) [][]string {
	if i.guard.health.Len() == 1 {
		return [][]string{keys}
	}
	parts := make([][]string, i.guard.health.Len())
	for _, key := range keys {
		n := i.part(key)
		parts[n] = append(parts[n], key)
	}
	return slices.DeleteFunc(parts, func(part []string) bool { return len(part) == 0 })
}

// sendPart sends the invalidations of a part of the keyspace.
func (i *invalidations) sendPart(ctx context.Context, keys []string) (errs []error) {
	return i.enqueueFailed(keys, i.forgetPart(ctx, "invalidate", keys, i.next))
}

// enqueueFailed returns the errors of the keys that failed, whose invalidations are pending from now on.
func (i *invalidations) enqueueFailed(keys []string, failed map[string]*RedisError) (errs []error) {
	var again []string
	for _, key := range keys {
		if err := failed[key]; err != nil {
			errs = append(errs, err)
			again = append(again, key)
		}
	}
	if len(again) > 0 {
		i.enqueue(again)
	}
	return errs
}

// forget runs, for each key, the call that removes it, in batches for each part of the keyspace, and returns the errors by key.
func (i *invalidations) forget(ctx context.Context, op string, keys []string, call func(string) *script.Call) map[string]*RedisError {
	parts := i.byPart(keys)
	failed := make([]map[string]*RedisError, len(parts))
	var all sync.WaitGroup
	for n, part := range parts[1:] {
		all.Go(func() { failed[n+1] = i.forgetPart(ctx, op, part, call) })
	}
	failed[0] = i.forgetPart(ctx, op, parts[0], call)
	all.Wait()
	for _, more := range failed[1:] {
		maps.Copy(failed[0], more)
	}
	return failed[0]
}

// forgetPart does so for one part. If Redis answers nothing of a batch, the rest is not tried.
func (i *invalidations) forgetPart(
	ctx context.Context, op string, keys []string, call func(string) *script.Call,
) map[string]*RedisError {
	failed := make(map[string]*RedisError)
	for len(keys) > 0 {
		batch := keys[:min(len(keys), maxInvalidations)]
		some := i.forgetBatch(ctx, op, batch, call)
		maps.Copy(failed, some)
		keys = keys[len(batch):]
		if first := some[batch[0]]; len(some) == len(batch) && health.Unavailable(first.Err) {
			for _, key := range keys {
				failed[key] = &RedisError{Op: first.Op, Key: i.shown(key), Err: first.Err}
			}
			break
		}
	}
	return failed
}

func (i *invalidations) forgetBatch(
	ctx context.Context, op string, keys []string, call func(string) *script.Call,
) map[string]*RedisError {
	calls := make([]*script.Call, len(keys))
	for n, key := range keys {
		calls[n] = call(key)
	}
	defer i.forgetLocal(keys) // also after an error, as Redis may have removed the key
	cmds, err := i.guard.write(ctx, calls)
	failed := make(map[string]*RedisError)
	for n, key := range keys {
		reason := err
		if err == nil {
			reason = cmds[n].Err()
		}
		if op == "invalidate" && reason != nil && redis.HasErrorPrefix(reason, "TRYAGAIN") {
			reason = i.despiteMove(ctx, key, calls[n])
		}
		if reason != nil {
			i.guard.health.Failed(reason)
			failed[key] = i.guard.redisError(op, i.shown(key), reason)
		}
	}
	return failed
}

// despiteMove removes what the call should have removed, which Redis refused because the slot is being moved and some of the keys are not
// there. It goes in steps of one key each. An intent that the call should have ended expires.
func (i *invalidations) despiteMove(ctx context.Context, key string, call *script.Call) error {
	notice := call.Args[1+slices.Index(call.Args, any(i.guard.notices.Channel))].(string) // it follows the channel
	for _, step := range i.steps(key, notice) {
		cmds, err := i.guard.write(ctx, step)
		for _, cmd := range cmds {
			err = errors.Join(err, cmd.Err())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next is the call that removes a key, with a notice of its own.
func (i *invalidations) next(key string) *script.Call { return i.call(key, i.message(key)) }

// notice is the next message that local tiers are to forget the key.
func (i *invalidations) notice(key string) string { return i.message(key) }
