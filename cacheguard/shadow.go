package cacheguard

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/verify"
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

// shadow asks the cache, in the background, what it would have answered to a call that has loaded without it; nil: absence.
func (q query[V]) shadow(ctx context.Context, loaded *V) {
	g, s := q.guard, &q.guard.shadowed
	g.life.TryAtMost(mostShadows, &s.running, func() { // stop: reads and loads have one
		begun := time.Now()
		switch served, is, err := q.cached(ctx); {
		case errors.Is(err, ErrClosed):
		case err != nil:
			s.failed.Add(1)
		case !is:
			s.missed.Add(1)
		default:
			s.hits.Add(1)
			s.took.Add(uint64(time.Since(begun)))
			if c := (&comparison[V]{q, served}); !c.IsServed(loaded) {
				s.differed.Add(1)
				g.verifier.Compare(ctx, c, &s.compared)
			}
		}
	})
}
