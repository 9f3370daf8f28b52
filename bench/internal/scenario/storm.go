package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// storms have keys that were written together expire under load.
func storms() Scenario {
	s := Scenario{
		Name: "expiry storm",
		About: "500 keys, written together to live for 2 s, expire under 2,000 Gets a second in an open loop on 2 instances; " +
			"a load takes 20 ms. Nothing stale is served. With jitter, each TTL is shorter by up to half.",
		Metrics: []Metric{
			{Name: "loads at once, at most", Better: Lower, Main: true},
			{Name: "loads by key", Better: Lower},
			{Name: "Get p50", Unit: "ms", Better: Lower},
			{Name: "Get p99", Unit: "ms", Better: Lower},
			{Name: "longest", Unit: "ms", Better: Lower},
		},
	}
	for _, jitter := range []float64{0, 0.5} {
		name := "without jitter"
		if jitter > 0 {
			name = "with jitter"
		}
		s.Cases = append(s.Cases, Case{
			Name: name, Params: map[string]float64{"jitter": jitter},
			Smoke: jitter > 0, Slow: true, Rounds: 3,
			Entries: eachCache(rivals.Caches, func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return runStorm(ctx, e, lib, jitter)
			}),
		})
	}
	return s
}

func runStorm(ctx context.Context, e Env, lib rivals.CacheLibrary, jitter float64) (_ Figures, err error) {
	const n, instances, ttl = 500, 2, 2 * time.Second // not everybody knows TTLs of less than a second, jitter included
	setup := rivals.Setup{Redis: e.Options(), TTL: ttl, Jitter: jitter, Entries: n}
	caches, err := openCaches(lib, setup, instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	keys, values := newKeys(n, Kibibyte)
	for _, c := range caches {
		if err := Fill(ctx, c, keys, values, 64); err != nil {
			return nil, err
		}
	}
	db := newDatabase(20*time.Millisecond, 0)
	l := openLoop{perSecond: 2000, length: ttl * 5 / 4, ask: func(ctx context.Context, i int) error {
		k := rand.IntN(n)
		got, err := caches[i%instances].Get(ctx, keys[k], db.load(values[k]))
		return Check(keys[k], got, values[k], err)
	}}
	l.run(ctx)
	return Figures{
		"loads at once, at most": float64(db.most.Load()),
		"loads by key":           float64(db.loads.Load()) / n,
		"Get p50":                l.took.at(50), "Get p99": l.took.at(99), "longest": l.took.longest(),
	}, errors.Join(l.err(), ctx.Err())
}
