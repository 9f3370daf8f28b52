package canonical

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Sections are sections of draft-ietf-httpbis-no-vary-search.
func TestTheFieldNoVarySearchIsReadAsTheDraftHasIt(t *testing.T) {
	for _, c := range []struct{ section, field, means string }{
		{"5.1", "key-order", "order "},
		{"5.1", "params", "except "},
		{"5.1", `params=("a")`, "a "},
		{"5.1", `params, except=("x")`, "except x "},
		{"5.1", `key-order, params, except=("x" "y")`, "order except x y "},
		{"5.1", `params, except=("y" "x" "y"), key-order`, "order except x y "},
		{"5.1", "params=?1", "except "},
		{"5.1", "key-order=?1", "order "},
		{"5.1", "params, except=()", "except "},
		{"5.1", `params=("a"), other=1`, "a "},
		{"5.1", "key-order;x=1", "order "},
		{"5.3", `params=("%C3%A9+%E6%B0%97")`, "%C3%A9+%E6%B0%97 "},
		{"5.1, nothing", "params=?0", ""},
		{"5.1, nothing", "params=()", ""},
		{"5.1, nothing", "key-order=?0", ""},
		{"5.1, nothing", "unknown-key", ""},
		{"5.1, invalid", `key-order="yes"`, ""},
		{"5.1, invalid", `params="a"`, ""},
		{"5.1, invalid", "params=(a)", ""},
		{"5.1, invalid", `params=("a"), except=("x")`, ""},
		{"5.1, invalid", "params=(), except=()", ""},
		{"5.1, invalid", `params=?0, except=("x")`, ""},
		{"5.1, invalid", "params, except=(x)", ""},
		{"5.1, invalid", `params, except="x"`, ""},
		{"5.1, invalid", "params, except=?1", ""},
		{"5.1, invalid", `except=("x")`, ""},
		{"5.1, invalid", "except=()", ""},
		{"5.1, invalid", `key-order=1, params=("a")`, ""},
		{"no dictionary", `params=("a"`, ""},
		{"no dictionary", "PARAMS", ""},
		{"no dictionary", "", ""},
		{"no name", `params=("%zz")`, ""},
	} {
		got := ""
		if s := SearchOf(http.Header{"No-Vary-Search": {c.field}}); s != nil {
			got = s.text
		}
		expect.Equal(t, c.section+": "+c.field, got, c.means)
	}
	two := SearchOf(http.Header{"No-Vary-Search": {"key-order", `params=("a")`}})
	expect.Equal(t, "two lines", two.text, "order a ")
	var none *Search
	expect.Equal(t, "none and none", none.Same(SearchOf(nil)), true)
	expect.Equal(t, "none and one", none.Same(two) || two.Same(none), false)
}

func TestQueriesThatDifferInNothingThatMattersAreOne(t *testing.T) {
	for _, c := range []struct {
		section, field, a, b string
		same                 bool
	}{
		{"6", "key-order", "?a=1&b=2", "?b=2&a=1", true},
		{"6", "key-order", "?a=1&a=2", "?a=2&a=1", false},
		{"6", "key-order", "?a=1&b=3&a=2", "?b=3&a=1&a=2", true},
		{"6", "key-order", "?a=1", "?a=2", false},
		{"6", "params", "?a=1", "", true},
		{"6", `params=("utm")`, "?utm=1&id=1", "?id=1", true},
		{"6", `params=("utm")`, "?utm=1&id=1", "?id=1&utm=2&utm=3", true},
		{"6", `params=("utm")`, "?id=1&x=1", "?x=1&id=1", false},
		{"6", `params=("utm")`, "?id=1", "?id=2", false},
		{"6", `params=("utm")`, "?Utm=1", "", false},
		{"6", `params=("utm")`, "?utm_x=1", "", false},
		{"6", `params, except=("id")`, "?id=1&x=1", "?y=2&id=1", true},
		{"6", `params, except=("id")`, "?id=1", "", false},
		{"6", `params, except=("id" "p"), key-order`, "?id=1&x&p=2", "?p=2&id=1", true},
		{"6", `params, except=("id" "p")`, "?id=1&p=2", "?p=2&id=1", false},
		{"6.1", "key-order", "", "?", true},
		{"6.1", "key-order", "?a=x", "?%61=%78", true},
		{"6.1", "key-order", "?a=x&&&&", "?a=x", true},
		{"6.1", "key-order", "?a=", "?a", true},
		{"6.1", "key-order", "?a=%20", "?a=+", true},
		{"5.3", `params=("%C3%A9+%E6%B0%97")`, "?%C3%A9%20%E6%B0%97=1", "?%C3%A9+%E6%B0%97=2", true},
		{"safe: a separator for some", `params=("utm")`, "?utm=1;id=evil", "", false},
		{"safe: what cannot be read", `params=("utm")`, "?utm=%zz", "", false},
		{"safe: what others may read", `params, except=("id")`, "?ID=evil", "", false},
		{"safe: what others may read", `params, except=("id")`, "?id[]=evil", "", false},
		{"safe: what others may read", `params, except=("id")`, "?+id=evil", "", false},
		{"safe: what others may read", `params, except=("a_id")`, "?a.id=evil", "", false},
		{"safe: what others may read", `params, except=("id")`, "?id%00x=evil", "", false},
		{"safe: a parameter in a value", `params=("utm")`, "?id=1%26utm=2", "?id=1", false},
	} {
		s := SearchOf(http.Header{"No-Vary-Search": {c.field}})
		expect.Equal(t, c.section+": "+c.field+": "+c.a+" and "+c.b, s.Normal(c.a) == s.Normal(c.b), c.same)
	}
}

func TestWhatPathsSaidIsForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	said := SearchOf(http.Header{noVarySearch: {"params"}})
	var s Searches
	expect.Equal(t, "nothing is known of nothing", s.Learn("/a", nil) || s.Any(), false)
	expect.Equal(t, "known", s.Learn("/a?b", said) && s.Any() && s.Of("/a?c") == said, true)
	for i := range 3 * maxSearches {
		s.Learn(strconv.Itoa(i), said)
	}
	expect.Equal(t, "bounded", len(s.said) <= maxSearches, true)
	expect.Equal(t, "forgotten", s.Of("/a") == nil, true)
	s.Learn("/b", said)
	s.Learn("/b", nil)
	expect.Equal(t, "no longer said", s.Of("/b") == nil, true)
}
