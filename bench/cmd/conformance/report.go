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
	w("*Reference.*")
	w("")
	w("Results of the public test suite for HTTP caches, [http-tests/cache-tests](https://github.com/http-tests/cache-tests), for package")
	w("middleware as a reverse proxy. `make conformance` runs the suite against the middleware in front of `httputil.ReverseProxy`, and writes")
	w("this page. The suite calls itself the start of a conversation, not a measure of conformance.")
	w("")
	w("Edition of the suite: %s.", edition)
	w("")
	w("Settings: `middleware.Config{StoreSetCookie: true, Heuristic: 0.1, SortAccept: true}`, and the zero Config, whose defaults are stricter")
	w("than the suite expects of a shared cache: see below.")
	w("")
	w("| | required (%d) | optimal (%d) |", s.required.of, s.optimal.of)
	w("|---|---|---|")
	w("| **cacheguard/middleware** | **%d** | **%d** |", s.required.passed, s.optimal.passed)
	w("| with the zero Config | %d | %d |", byDefault.required.passed, byDefault.optimal.passed)
	for _, p := range peers {
		w("| %s | %d | %d |", p.name, p.required, p.optimal)
	}
	w("")
	w("The other figures are the best of the peers known, for an edition with 160 required and 105 optimal checks.")
	w("")
	w("## Checks that did not pass")
	w("")
	w("| check | kind | reason |")
	w("|---|---|---|")
	last := ""
	once := func(reason string) string { // of checks in a row that have the same
		if reason == last {
			return "the same"
		}
		last = reason
		return cell(reason)
	}
	for _, m := range s.missed {
		w("| `%s`: %s | %s | %s |", m.id, cell(m.name), m.kind, once(reason(m)))
	}
	w("")
	w("## Checks that pass only with these settings")
	w("")
	w("| check | kind | reason |")
	w("|---|---|---|")
	known := make(map[string]bool)
	for _, m := range s.missed {
		known[m.id] = true
	}
	for _, m := range byDefault.missed {
		if !known[m.id] {
			w("| `%s`: %s | %s | %s |", m.id, cell(m.name), m.kind, once(defaultReason(m)))
		}
	}
	w("")
	w("A page that was fresh stands in for a handler that fails for ten seconds by default (`StaleIfError`), as RFC 9111 section 4.2.4 allows")
	w("where the origin does not answer, and as long as Varnish does. One that was stale from the beginning, or says must-revalidate, s-maxage")
	w("or no-cache, does not.")
	return b.String()
}

// cell is text for a cell of a table.
func cell(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "|", `\|`) }

// reasons say why a check does not pass, by the beginning of its name. A check that is not here needs a look.
var reasons = []struct{ id, why string }{
	{
		"headers-store-Transfer-Encoding",
		"net/http refuses a response with an unknown transfer coding, as RFC 9112 section 6.1 allows, so the middleware never sees it.",
	},
	{
		"method-POST",
		"Responses to POST are not stored. Nobody could tell which of two POSTs at the same time committed last, unless they waited for each other.",
	},
	{
		"vary-normalise-lang-select",
		"The request selects the page, not its Content-Language: the handler knows its languages, the cache does not.",
	},
	{
		"conditional-lm-fresh-no-lm",
		"Without Last-Modified, RFC 9111 section 4.3.2 compares If-Modified-Since with Date. The Date is later, so the answer is 200.",
	},
	{
		"partial-store-partial-",
		"The origin's Content-Range announces six bytes and its body has five, or it names no validator by which parts may be combined. " +
			"The middleware loads the whole page instead, and answers the range from that.",
	},
}

// defaultReasons say why a check does not pass with the zero Config, while others do.
var defaultReasons = []struct{ id, why string }{
	{
		"heuristic-",
		"Off by default (`Heuristic`) but for `public`, 405, 414 and 501: a handler that says nothing about caching has not thought of it. Files that " +
			"http.ServeContent sends to a client that has an API key have a Last-Modified, too, and would go to everybody.",
	},
	{
		"vary-normalise-lang-order",
		"Off by default (`SortAccept`): many handlers take the first of two languages, and clients would get the page in the language that another prefers.",
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

func defaultReason(m miss) string { return because(m, defaultReasons) }

func reason(m miss) string { return because(m, reasons) }

func because(m miss, reasons []struct{ id, why string }) string {
	for _, r := range reasons {
		if strings.HasPrefix(m.id, r.id) {
			return r.why
		}
	}
	return m.what
}
