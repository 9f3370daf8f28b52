package cacheguard

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/verify"
	"github.com/cacheguard/go/internal/cache/write"
)

// Shadowed counts Gets that also asked the cache; see Config.Shadow.
type Shadowed struct {
	Hits     uint64        // that the cache would have answered. Gets beyond 1,024 at a time do not ask
	Missed   uint64        // that it would not
	Failed   uint64        // that Redis or the second load did not answer, or whose value cannot be cached
	Differed uint64        // hits that were not what the source had: perhaps it was being written
	Old      uint64        // how many of these were old and stayed so: the Logger has the key. It is found out as for Verified.Stale, for 4 at a time
	Took     time.Duration // how long the hits took, together
}

// mostShadows is how many shadows there are at once. Others are left out.
const mostShadows = 1024

// shadowed counts what shadows find.
type shadowed struct {
	running                              atomic.Int64
	hits, missed, failed, differed, took atomic.Uint64
	compared                             verify.Found
}

func (s *shadowed) counts() Shadowed {
	return Shadowed{
		Hits: s.hits.Load(), Missed: s.missed.Load(), Failed: s.failed.Load(), Differed: s.differed.Load(), Old: s.compared.Stale.Load(),
		Took: time.Duration(s.took.Load()),
	}
}

// shadow asks the cache, in the background, what it would have answered to a call that has loaded without it.
func shadow[V any](ctx context.Context, g *Guard, spec loadSpec[V], key string, loaded any) {
	spec.key, spec.valueKey = key, spec.valueKeyOf(g, key)
	q := query[V]{guard: g, spec: spec, asked: g.clock.Now()}
	g.life.TryAtMost(mostShadows, &g.shadowed.running, func() { q.shadow(ctx, loaded) }) // stop: reads and loads have one
}

func (q *query[V]) shadow(ctx context.Context, loaded any) {
	g, s := q.guard, &q.guard.shadowed
	begun := time.Now()
	var v V
	var how Outcome
	var err error
	if kept, ok := q.spec.fromLocal(g, q.spec.key); ok {
		v, how, err = kept.result()
	} else {
		v, how, err = q.read(ctx, write.Past{})
	}
	served := any(&v)
	switch {
	case err != nil && !(absentAlone(err) && how != ""):
		if !errors.Is(err, ErrClosed) {
			s.failed.Add(1)
		}
		return
	case how != Hit && how != Local && how != Stale && how != Negative:
		s.missed.Add(1)
		return
	case how == Negative:
		served = absence{}
	}
	s.hits.Add(1)
	s.took.Add(uint64(time.Since(begun)))
	c := &comparison{guard: g, job: q.spec.loadOf(g, q.spec.key, scopeOf(ctx, g), nil), served: served}
	if !c.IsServed(loaded) {
		s.differed.Add(1)
		g.verifier.Compare(ctx, c, &s.compared)
	}
}
