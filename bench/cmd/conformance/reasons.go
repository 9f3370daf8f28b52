package main

import "strings"

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
