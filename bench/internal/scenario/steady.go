package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// steady is a load that has nothing to do with how fast it is answered.
func steady() Scenario {
	s := Scenario{
		Name: "steady",
		About: "One instance, asked in an open loop. Keys that expire do so every second, take 200 ms to load and may be served stale " +
			"for a minute by whoever can; \"waited\" is the share of Gets that took longer than 100 ms. A Get takes the time from when " +
			"it was due.",
		Metrics: []Metric{
			{Name: "p50", Unit: "ms", Better: Lower},
			{Name: "p99", Unit: "ms", Better: Lower, Main: true},
			{Name: "p99.9", Unit: "ms", Better: Lower},
			{Name: "longest", Unit: "ms", Better: Lower},
			{Name: "waited", Unit: "%", Better: Lower},
			{Name: "loads", Unit: "/s", Better: Either},
			{Name: "requests", Unit: "/s", Better: Lower},
		},
	}
	for _, c := range []load{
		{name: "20 keys that expire, 2,000 Gets a second", keys: 20, perSecond: 2000, ttl: time.Second, stale: time.Minute},
		{name: "1,000 keys that do not expire, 10,000 Gets a second", keys: 1000, perSecond: 10_000, ttl: Forever},
	} {
		s.Cases = append(s.Cases, Case{
			Name: c.name, Params: map[string]float64{"keys": float64(c.keys), "perSecond": float64(c.perSecond)},
			Smoke: true, Slow: true, Rounds: 3,
			Entries: eachCache(rivals.Caches, func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return c.run(ctx, e, lib)
			}),
		})
	}
	return s
}

// load is what is asked of one instance.
type load struct {
	name            string
	keys, perSecond int
	ttl, stale      time.Duration
}

func (a load) run(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	const patience = 100 * time.Millisecond
	setup := rivals.Setup{Redis: e.Options(), TTL: a.ttl, StaleFor: a.stale, Entries: a.keys}
	c, err := lib.Open(setup)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	keys, values := newKeys(a.keys, Kibibyte)
	for range 2 {
		if err := Fill(ctx, c, keys, values, 64); err != nil {
			return nil, err
		}
	}
	db := newDatabase(200*time.Millisecond, 0)
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	l := openLoop{perSecond: a.perSecond, length: e.For * 10, late: patience, ask: func(ctx context.Context, _ int) error {
		k := rand.IntN(a.keys)
		got, err := c.Get(ctx, keys[k], db.load(values[k]))
		return Check(keys[k], got, values[k], err)
	}}
	l.run(ctx)
	after, err := e.Redis.Usage(ctx)
	seconds := l.length.Seconds()
	return Figures{
		"p50": l.took.at(50), "p99": l.took.at(99), "p99.9": l.took.at(99.9), "longest": l.took.longest(),
		"waited":   100 * float64(l.slow.Load()) / (seconds * float64(a.perSecond)),
		"loads":    float64(db.loads.Load()) / seconds,
		"requests": float64(after.Since(before).Requests) / seconds,
	}, errors.Join(err, l.err(), ctx.Err())
}
