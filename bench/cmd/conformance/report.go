package main

import (
	"fmt"
	"slices"
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
	w("*Reference.*")
	w("")
	w("What the public test suite for HTTP caches ([http-tests/cache-tests](https://github.com/http-tests/cache-tests), %s)", edition)
	w("finds in package middleware in front of `httputil.ReverseProxy`: `make conformance`. The first line is with")
	w("`middleware.Config{StoreSetCookie: true, Heuristic: 0.1, SortAccept: true}`; the zero Config is stricter than the suite expects. The other")
	w("figures are the best of the peers known, for an edition with 160 required and 105 optimal checks.")
	w("")
	w("| | required (%d) | optimal (%d) |", s.required.of, s.optimal.of)
	w("|---|---|---|")
	w("| **cacheguard/middleware** | **%d** | **%d** |", s.required.passed, s.optimal.passed)
	w("| with the zero Config | %d | %d |", byDefault.required.passed, byDefault.optimal.passed)
	for _, p := range peers {
		w("| %s | %d | %d |", p.name, p.required, p.optimal)
	}
	w("")
	w("| checks that did not pass | kind | reason |")
	w("|---|---|---|")
	known := make(map[string]bool)
	for _, m := range s.missed {
		known[m.id] = true
	}
	b.WriteString(rows(s.missed, reasons))
	w("")
	w("| checks that pass only with these settings | kind | reason |")
	w("|---|---|---|")
	b.WriteString(rows(slices.DeleteFunc(slices.Clone(byDefault.missed), func(m miss) bool { return known[m.id] }), defaultReasons))
	return b.String()
}

// rows makes one row of checks that follow each other and have the same kind and reason.
func rows(missed []miss, reasons []reason) string {
	var b strings.Builder
	for len(missed) > 0 {
		kind, why := missed[0].kind, because(missed[0], reasons)
		var ids []string
		for len(missed) > 0 && missed[0].kind == kind && because(missed[0], reasons) == why {
			ids = append(ids, "`"+missed[0].id+"`")
			missed = missed[1:]
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(ids, ", "), kind, cell(why))
	}
	return b.String()
}

// cell is text for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "|", `\|`) }

// A reason says why a check does not pass, by the beginning of its name.
type reason struct{ id, why string }

// A check that is not here needs a look.
var reasons = []reason{
	{
		"headers-store-Transfer-Encoding",
		"net/http refuses a response with an unknown transfer coding, as RFC 9112 section 6.1 allows.",
	},
	{
		"method-POST",
		"Responses to POST are not stored: nobody could tell which of two at the same time committed last.",
	},
	{
		"vary-normalise-lang-select",
		"The request selects the page, not its Content-Language: the handler knows its languages, the cache does not.",
	},
	{
		"conditional-lm-fresh-no-lm",
		"Without Last-Modified, RFC 9111 section 4.3.2 compares If-Modified-Since with Date, which is later.",
	},
	{
		"partial-store-partial-",
		"The origin's Content-Range contradicts its body, or it names no validator by which parts may be combined: the middleware loads the whole page.",
	},
}

// defaultReasons say why a check does not pass with the zero Config, while others do.
var defaultReasons = []reason{
	{
		"heuristic-",
		"Off by default (`Heuristic`) but for `public`, 405, 414 and 501: a handler that says nothing about caching has not thought of it.",
	},
	{
		"vary-normalise-lang-order",
		"Off by default (`SortAccept`): many handlers take the first of two languages.",
	},
	{
		"headers-store-Set-Cookie",
		"Off by default (`StoreSetCookie`): the cookie is mostly a session, and everybody would share it.",
	},
	{
		"other-set-cookie",
		"Off by default (`StoreSetCookie`): the cookie is mostly a session, and everybody would share it.",
	},
}

func because(m miss, reasons []reason) string {
	for _, r := range reasons {
		if strings.HasPrefix(m.id, r.id) {
			return r.why
		}
	}
	return m.name + ": " + m.what
}
