package main

import (
	"fmt"
	"strings"
)

// peers are the best others known, counted in the same way.
var peers = []struct {
	name              string
	required, optimal int
}{
	{"Souin", 136, 62},
	{"Apache Traffic Server", 134, 73},
}

// report is the page about a run.
func report(edition string, s, byDefault scores) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("# Conformance")
	w("")
	w("Results of the public test suite for HTTP caches, [http-tests/cache-tests](https://github.com/http-tests/cache-tests), for package")
	w("middleware as a reverse proxy. `make conformance` runs the suite against the middleware in front of `httputil.ReverseProxy`, and writes")
	w("this page. The suite calls itself the start of a conversation, not a measure of conformance.")
	w("")
	w("Edition of the suite: %s.", edition)
	w("")
	w("Settings: `middleware.Config{StoreSetCookie: true, Heuristic: 0.1, StaleIfError: time.Hour, SortAccept: true}`. The suite expects a")
	w("shared cache to store cookies, to estimate freshness from Last-Modified, to serve stale responses when the origin breaks off, and to")
	w("ignore the order of languages. All four are off by default.")
	w("")
	w("| | required (%d) | optimal (%d) |", s.required.of, s.optimal.of)
	w("|---|---|---|")
	w("| **cacheguard/middleware** | **%d** | **%d** |", s.required.passed, s.optimal.passed)
	for _, p := range peers {
		w("| %s | %d | %d |", p.name, p.required, p.optimal)
	}
	w("")
	w("The other figures are those of the best peers known, for an edition with 160 required and 105 optimal checks.")
	w("")
	w("## Checks that did not pass")
	w("")
	w("| check | kind | reason |")
	w("|---|---|---|")
	for _, m := range s.missed {
		w("| `%s`: %s | %s | %s |", m.id, cell(m.name), m.kind, cell(reason(m)))
	}
	return b.String()
}

// cell is text for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "|", `\|`) }
