package scenario

import (
	"context"
	"errors"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// pageLone makes one caller ask for one page that is there, in turns with the bare handler.
func pageLone() Scenario {
	return Scenario{
		Name: "HTTP, lone",
		About: "One caller asks ServeHTTP for one page that is there, in turns of a hundred with a bare handler, which makes " +
			"its page's header each time, and nothing else: what is more than that is what caching adds.",
		Metrics: []Metric{
			{Name: "p50", Unit: "µs", Better: Lower, Main: true},
			{Name: "p99", Unit: "µs", Better: Lower},
			{Name: "p50 more", Unit: "µs", Better: Lower},
			{Name: "allocations", Better: Lower},
			{Name: "allocations more", Better: Lower},
		},
		Cases: []Case{{Name: "1 KiB", Smoke: true, Entries: eachCache(rivals.Pages, runPageLone)}},
	}
}

func runPageLone(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	setup := rivals.Setup{Redis: e.Options(), TTL: Forever}
	c, err := lib.Open(setup)
	if err != nil {
		return nil, err
	}
	bare, err := rivals.BarePages.Open(setup)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	defer func() { err = errors.Join(err, c.Close(), bare.Close()) }()
	keys, values := newKeys(1, Kibibyte)
	if err := errors.Join(Fill(ctx, c, keys, values, 1), Fill(ctx, c, keys, values, 1)); err != nil {
		return nil, err
	}
	made := func(ctx context.Context) ([]byte, error) { return values[0], ctx.Err() }
	read := func(c rivals.Cache, load rivals.Loader) func() error {
		return func() error {
			got, err := c.Get(ctx, keys[0], load)
			return Check(keys[0], got, values[0], err)
		}
	}
	mine, plain := turns{e.batch(), read(c, neverLoad), newTimes()}, turns{e.batch(), read(bare, made), newTimes()}
	if lib.Name == rivals.BarePages.Name {
		mine.read = read(c, made)
	}
	if err := errors.Join(plain.take(), mine.take()); err != nil { // connections
		return nil, err
	}
	if err := alternate(&plain, &mine, e.For); err != nil {
		return nil, err
	}
	least, _, perr := plain.costs()
	mallocs, _, err := mine.costs()
	return Figures{
		"p50": mine.took.at(50) * 1e3, "p99": mine.took.at(99) * 1e3,
		"p50 more":         (mine.took.at(50) - plain.took.at(50)) * 1e3,
		"allocations":      mallocs,
		"allocations more": mallocs - least,
	}, errors.Join(err, perr)
}
