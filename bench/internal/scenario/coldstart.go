package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// coldStart makes every instance ask for every key at once, and nobody has any.
func coldStart() Scenario {
	s := Scenario{
		Name: "cold start",
		About: "Every one of 4 instances asks for all keys at once, with a caller each, and nobody has any. The database has 100 " +
			"connections and takes 5 ms for a key, which is what bounds \"all answered\" from below.",
		Metrics: []Metric{
			{Name: "all answered", Unit: "ms", Better: Lower, Main: true},
			{Name: "answer p50", Unit: "ms", Better: Lower},
			{Name: "loads by key", Better: Lower},
			{Name: "requests by key", Better: Lower},
			{Name: "commands by key", Better: Lower},
			{Name: "server CPU by key", Unit: "µs", Better: Lower},
		},
	}
	for _, keys := range []int{10_000, 500} {
		s.Cases = append(s.Cases, Case{
			Name:   Thousands(keys) + " keys",
			Params: map[string]float64{"keys": float64(keys), "instances": coldInstances},
			Smoke:  keys == 500, Rounds: 3, Away: []time.Duration{0, datacenter, time.Millisecond, 10 * time.Millisecond},
			Entries: eachCache(rivals.Caches, func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return runColdStart(ctx, e, lib, keys)
			}),
		})
	}
	return s
}

const coldInstances = 4

func runColdStart(ctx context.Context, e Env, lib rivals.CacheLibrary, n int) (_ Figures, err error) {
	caches, err := openCaches(lib, rivals.Setup{Redis: e.Options(), TTL: Forever, Entries: n}, coldInstances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, CloseAll(caches)) }()
	if _, _, err := start(ctx, caches, newDatabase(time.Millisecond, 100), 100); err != nil { // connections and scripts
		return nil, err
	}
	if err := e.Redis.Calm(ctx); err != nil {
		return nil, err
	}
	before, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	db := newDatabase(5*time.Millisecond, 100)
	answers, took, err := start(ctx, caches, db, n)
	if err != nil {
		return nil, err
	}
	if err := e.Redis.Calm(ctx); err != nil { // somebody stores in the background
		return nil, err
	}
	after, err := e.Redis.Usage(ctx)
	spent, keys := after.Since(before), float64(n)
	return Figures{
		"all answered": Millis(took), "answer p50": answers.at(50),
		"loads by key":    float64(db.loads.Load()) / keys,
		"requests by key": float64(spent.Requests) / keys, "commands by key": float64(spent.Total()) / keys,
		"server CPU by key": Micros(spent.CPU) / keys,
	}, err
}

// start makes each instance ask for n new keys.
func start(ctx context.Context, caches []rivals.Cache, db *database, n int) (*times, time.Duration, error) {
	keys, values := newKeys(n, Kibibyte)
	answers, began := newTimes(), time.Now()
	err := Together(ctx, len(caches)*n, func(ctx context.Context, i int) error {
		c, k := caches[i/n], i%n
		got, err := c.Get(ctx, keys[k], db.load(values[k]))
		answers.add(time.Since(began))
		return Check(keys[k], got, values[k], err)
	})
	return answers, time.Since(began), err
}
