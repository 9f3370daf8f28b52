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
		"Responses to POST are not stored. The answer to a POST usually concerns one user, and is seldom meant for the next GET.",
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

func reason(m miss) string {
	for _, r := range reasons {
		if strings.HasPrefix(m.id, r.id) {
			return r.why
		}
	}
	return m.what
}
