package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/server"
)

// arrivals have hits come when they come, whether or not earlier ones have been answered.
func arrivals() Scenario {
	s := Scenario{
		Name: "open loop",
		About: "Hits of one instance, so many a second, as visitors come who know nothing of each other (Poisson), whether or not earlier ones have been " +
			"answered; a hit takes the time from when it was due. Everybody alternates with plain GETs on a pool of their own, a slice of time each; \"beside GET\" is the median " +
			"ratio of two neighbouring slices, and that of the plain GETs to themselves is what the machine's noise is worth. Requests and server CPU are by hit.",
		Metrics: []Metric{
			{Name: "p50", Unit: "ms", Better: Lower},
			{Name: "p90", Unit: "ms", Better: Lower},
			{Name: "p99", Unit: "ms", Better: Lower},
			{Name: "p50 beside GET", Better: Lower, Main: true},
			{Name: "p90 beside GET", Better: Lower},
			{Name: "requests", Better: Lower},
			{Name: "server CPU", Unit: "µs", Better: Lower},
		},
	}
	for _, keys := range []int{1, 10_000} {
		for _, perSecond := range []int{500, 2000, 5000, 10_000} {
			which := reading{keys: keys, bytes: Kibibyte}
			s.Cases = append(s.Cases, Case{
				Name:   fmt.Sprintf("%s, %s a second", which.which(), Thousands(perSecond)),
				Params: map[string]float64{"keys": float64(keys), "perSecond": float64(perSecond)},
				Smoke:  keys == 1 && perSecond == 2000, Rounds: 3, Away: []time.Duration{0, datacenter, time.Millisecond},
				Entries: eachCache(rivals.Readers, func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
					return runArrivals(ctx, e, lib, which, perSecond)
				}),
			})
		}
	}
	return s
}

// visited is an instance that is read on schedule.
type visited struct {
	reading
	redis  *server.Server
	cache  rivals.Cache
	keys   []string
	values [][]byte
	took   *times
	spent  server.Usage
}

// visit opens an instance of which everything is in Redis. The caller closes it.
func visit(ctx context.Context, e Env, lib rivals.CacheLibrary, r reading) (_ *visited, err error) {
	v := &visited{reading: r, redis: e.Redis, took: newTimes()}
	v.keys, v.values = newKeys(r.keys, r.bytes)
	v.cache, err = stocked(ctx, e, lib, v.keys, v.values)
	return v, err
}

// slice returns what hits take for d. It is added to all that they took.
func (v *visited) slice(ctx context.Context, perSecond int, d time.Duration) (*times, error) {
	before, err := v.redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	l := openLoop{perSecond: perSecond, random: true, length: d, ask: func(ctx context.Context, _ int) error {
		k := rand.IntN(v.reading.keys)
		got, err := v.cache.Get(ctx, v.keys[k], neverLoad)
		return Check(v.keys[k], got, v.values[k], err)
	}}
	l.run(ctx)
	after, err := v.redis.Usage(ctx)
	v.spent = v.spent.Plus(after.Since(before))
	v.took.h.Merge(l.took.h)
	return l.took, errors.Join(err, l.err(), ctx.Err())
}

// runArrivals alternates, each pair the other way round, so that what grows with time counts for both.
func runArrivals(ctx context.Context, e Env, lib rivals.CacheLibrary, r reading, perSecond int) (_ Figures, err error) {
	mine, err := visit(ctx, e, lib, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mine.cache.Close()) }()
	plain, err := visit(ctx, e, rivals.PlainGet, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.cache.Close()) }()
	const pairs = 6
	var p50s, p90s []float64 // ratios of neighbours
	for i := range pairs + 1 {
		if i == 1 { // all is warm
			mine.took, mine.spent, p50s, p90s = newTimes(), server.Usage{}, nil, nil
		}
		m, p, err := alternateSlices(ctx, mine, plain, perSecond, e.For/2, i%2 == 1)
		if err != nil {
			return nil, err
		}
		p50s, p90s = append(p50s, m.at(50)/p.at(50)), append(p90s, m.at(90)/p.at(90))
	}
	n := float64(mine.took.h.TotalCount())
	return Figures{
		"p50": mine.took.at(50), "p90": mine.took.at(90), "p99": mine.took.at(99),
		"p50 beside GET": middle(p50s), "p90 beside GET": middle(p90s),
		"requests":   float64(mine.spent.Requests) / n,
		"server CPU": Micros(mine.spent.CPU) / n,
	}, nil
}

// alternateSlices makes the two take a slice each.
func alternateSlices(
	ctx context.Context, mine, plain *visited, perSecond int, d time.Duration, plainFirst bool,
) (m, p *times, err error) {
	var merr, perr error
	if plainFirst {
		p, perr = plain.slice(ctx, perSecond, d)
	}
	m, merr = mine.slice(ctx, perSecond, d)
	if !plainFirst {
		p, perr = plain.slice(ctx, perSecond, d)
	}
	return m, p, errors.Join(merr, perr)
}

// middle is the median.
func middle(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
