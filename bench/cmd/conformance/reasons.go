package main

import "strings"

// reasons say why a check does not pass, by the beginning of its name. What is not here is to be looked into.
var reasons = []struct{ id, why string }{
	{
		"headers-store-Transfer-Encoding",
		"net/http refuses a response with an unknown transfer coding, as RFC 9112 section 6.1 allows; the middleware does not see it.",
	},
	{
		"method-POST",
		"Responses to POST are not stored. Applications answer a POST with what concerns one user, and seldom mean it for the next GET.",
	},
	{
		"vary-normalise-lang-select",
		"A page is selected by what was asked for, not by its Content-Language: the handler knows its languages, the cache does not.",
	},
	{
		"conditional-lm-fresh-no-lm",
		"RFC 9111 section 4.3.2 compares If-Modified-Since with Date when there is no Last-Modified. The Date is later, so the answer is 200.",
	},
	{
		"partial-store-partial-",
		"The origin's Content-Range announces six bytes and its body has five, or it names no validator by which parts may be combined. " +
			"A range has the whole page loaded instead, and is answered from that.",
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
