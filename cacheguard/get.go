package cacheguard

import (
	"context"
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/flight"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
)

// maxAsks is how often a call asks again because the answer it shared was older than itself, before it loads by itself.
const maxAsks = 3

// Get returns the value of the key: from the cache, or from load, which then runs once for all callers of all
// instances that ask meanwhile.
//
// A Get that begins after an Invalidate returned nil, in any process, never returns a value that was loaded before it.
// Callers that share a read or a load share one value: values must not be changed.
//
// Load gets a context with the values of the first caller's, which is cancelled when the last caller has left, when
// LoadTimeout passes and when the Guard is closed. Its error is returned as it is to those who shared the load here, as
// a *LoadError on other instances, and is remembered for a moment (50 ms, doubling with each failure to at most 5 s):
// until then Get returns it without asking again. ErrNotFound is remembered for NegativeTTL. A load that panics makes
// a *PanicError. A value that cannot be stored is returned all the same.
//
// When ctx ends, Get returns an error that matches ctx.Err() and the context's cause; the load goes on for the others.
func Get[V any](ctx context.Context, g *Guard, key string, load func(context.Context) (V, error)) (V, error) {
	if g == nil {
		var none V
		return none, errNilGuard
	}
	v, _, err := toldFetch(ctx, g, key, origin[V]{load: load})
	return v, err
}

// fetch reads the entry; what it finds decides how it goes on.
func fetch[V any](ctx context.Context, g *Guard, key string, src origin[V]) (v V, how Outcome, err error) {
	if err := admit(ctx, g, key, src.load != nil || src.reload != nil || src.lookOnly); err != nil {
		return v, "", err
	}
	asked := g.clock.Now()
	if reason := g.distrust(key); reason != nil {
		return bypass[V](ctx, g, asked, src.job(ctx, g, key, nil), reason)
	}
	if local, ok := src.kept(g, key); ok {
		src.sample(ctx, g, key, local.value)
		return local.result()
	}
	if src.load != nil && g.local == nil && g.expected.miss() {
		a, joined, err := g.rebuild(ctx, src.job(ctx, g, key, nil), asked, nil)
		if err != nil {
			return v, "", g.ended(ctx, key, err)
		}
		if a.answers(asked, joined) {
			return result[V](a, joined)
		}
	}
	valueKey := g.redisKey(key)
	for range maxAsks + 1 {
		mark := g.local.mark(key)
		var storing <-chan struct{} // looked for before the read: what is stored by then, the read finds
		if src.lookOnly {
			storing = g.beingStored(key, protocol.ShapeOf[V]{})
		}
		read, err := g.link.Get(ctx, valueKey)
		if err != nil {
			return v, "", g.ended(ctx, key, err)
		}
		s := view[V](g, key, mark, read)
		g.expected.found(read.Raw != nil || read.Err != nil)
		switch state, found := src.state(s); state {
		case fresh:
			src.sample(ctx, g, key, found.value)
			return found.result()
		case ageing, stale:
			if src.judge == nil {
				g.reportStale(key, s.state, s.entry)
			}
			if j := src.job(ctx, g, key, found.value); j != nil {
				j.aged = src.judge == nil && s.aged()
				g.refresh(ctx, j, read.Raw, s.entry.Took)
			}
			return found.result()
		case unreachable:
			reason := g.redisError("get", key, read.Err)
			if old, ok := src.lastResort(g, key); ok {
				return old.result()
			}
			return bypass[V](ctx, g, asked, src.job(ctx, g, key, nil), reason)
		case missing, expired, unusable:
			j := src.job(ctx, g, key, found.value)
			if j == nil {
				if over(ctx, storing) {
					continue
				}
				return v, "", g.notCached(ctx, key)
			}
			j.aged = src.judge == nil && s.aged()
			a, joined, err := g.rebuild(ctx, j, asked, read.Raw)
			if err != nil {
				return v, "", g.ended(ctx, key, err)
			}
			if found.value != nil {
				g.local.forget([]string{key}) // it may think that is fresh
			}
			if a.answers(asked, joined) && !src.wouldJudge(&a, asked) {
				return result[V](a, joined)
			}
		}
	}
	return bypass[V](ctx, g, asked, src.job(ctx, g, key, nil), nil)
}

// admit refuses calls that cannot be answered.
func admit(ctx context.Context, g *Guard, key string, hasLoad bool) error {
	switch {
	case key == "":
		return errEmptyKey
	case !hasLoad:
		return fmt.Errorf("cacheguard: get %q: load is nil", key)
	case loadingOf(ctx).includes(g, key):
		return fmt.Errorf("%w: %q", ErrReentrant, key)
	case ctx.Err() != nil:
		return ended(ctx, key)
	}
	return nil
}

// bypass loads without the cache, if there is anything to load, sharing the load with other calls that began before it.
// With FailClosed it returns the reason instead, if there is one.
func bypass[V any](ctx context.Context, g *Guard, asked uint64, j *job, reason *RedisError) (v V, how Outcome, err error) {
	if j == nil {
		return v, "", ErrNotCached
	}
	if reason != nil && g.cfg.FailClosed {
		return v, "", reason
	}
	for {
		a, joined, err := g.share(ctx, j, direct, asked, func(ctx context.Context, publish func(answer)) answer {
			if reason != nil {
				return g.loadBypassed(ctx, j, publish)
			}
			return g.loadDirectly(ctx, j, Loaded)
		})
		if err != nil {
			return v, "", g.ended(ctx, j.key, err)
		}
		if a.answers(asked, joined) {
			return result[V](a, joined)
		}
		// It had begun before this call did. The next one begins now.
	}
}

// ended is the error of a call that was not answered.
func (g *Guard) ended(ctx context.Context, key string, err error) error {
	if errors.Is(err, flight.ErrClosed) || errors.Is(err, link.ErrClosed) {
		return ErrClosed
	}
	return ended(ctx, key)
}

// result unpacks a flight's answer.
func result[V any](a answer, joined bool) (v V, how Outcome, err error) {
	how = a.outcome
	if joined && how == Loaded {
		how = Shared
	}
	if a.err != nil {
		return v, how, a.err
	}
	return *a.value.(*V), how, nil
}
