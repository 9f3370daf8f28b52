package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// pageStampedes are a stampede for a page that has expired.
func pageStampedes() Scenario {
	s := stampedes()
	s.Name = "HTTP, stampede"
	s.About = "The requests of all instances ask at the same moment for one page that has just expired; its handler takes 50 ms. " +
		"Loads are calls of the handler. Answers are timed from the end of the first call. Redis' requests, commands and processor time are by stampede."
	c := Crowd{8, 128, 50 * time.Millisecond, true}
	s.Cases = []Case{c.of(rivals.Pages, true)}
	s.Cases[0].Slow = true // as pages have to expire
	return s
}

// pageHits are hits of pages, through ServeHTTP alone and over connections.
func pageHits() Scenario {
	s := hits()
	s.Name = "HTTP, hits"
	s.About = "The callers of one instance ask for pages that are there, each again as soon as it has been answered: from ServeHTTP, " +
		"or through a server, connections and a client of net/http, all in the one process. The bare handler makes its page's header each time, and nothing else. \"Memory\" is that before Redis, or all there is. " +
		"Requests and server CPU, of Redis, are by page."
	s.Cases = nil
	add := func(name string, libs []rivals.CacheLibrary, r reading, smoke bool) {
		s.Cases = append(s.Cases, Case{
			Name:   name,
			Params: map[string]float64{"keys": float64(r.keys), "callers": float64(r.callers), "bytes": float64(r.bytes)},
			Smoke:  smoke,
			Entries: eachCache(libs, func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return r.run(ctx, e, lib)
			}),
		})
	}
	var remote []rivals.CacheLibrary
	for _, lib := range rivals.Pages {
		remote = append(remote, rivals.OverNetwork(lib))
	}
	one := reading{keys: 1, callers: base.callers, bytes: base.bytes}
	many := reading{keys: 10_000, callers: base.callers, bytes: base.bytes, zipf: true}
	add("1 page, 64 callers, ServeHTTP", rivals.Pages, one, true)
	add("10,000 pages, zipf, 64 callers, ServeHTTP", rivals.Pages, many, false)
	add("1 page, 64 callers, net/http", remote, one, true)
	return s
}

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
