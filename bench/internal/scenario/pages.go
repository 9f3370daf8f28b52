package scenario

import (
	"context"
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
