package canonical

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

func FuzzSearchOf(f *testing.F) {
	for _, field := range []string{`params`, `key-order`, `params=("a" "b")`, `params, except=("id")`, `key-order, params=("%20")`, `except=("a")`, `params=?0`, `params=(1)`} {
		f.Add(field, "a=1&b=2", "b=2&a=1")
	}
	f.Fuzz(func(t *testing.T, field, one, other string) {
		s := SearchOf(http.Header{noVarySearch: {field}})
		if s == nil {
			return
		}
		if !s.Same(SearchOf(http.Header{noVarySearch: {field}})) {
			t.Errorf("%q says two things", field)
		}
		if s.Normal(one) != s.Normal("?"+one) && one != "" && one[0] != '?' {
			t.Errorf("%q: a question mark makes a difference to %q", field, one)
		}
		if one == other && s.Normal(one) != s.Normal(other) {
			t.Errorf("%q tells %q from itself", field, one)
		}
		if added := one + "&unheard-of=1"; !s.except && one != "" && s.Normal(one) == s.Normal(added) && !listed(s, "unheard-of") {
			t.Errorf("%q sees no difference between %q and %q", field, one, added)
		}
	})
}

func listed(s *Search, name string) bool { return !s.counts(name) }

func TestTheGuideListsTheFieldsThatTellPagesApart(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range shapingFields {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("%s is never found in a header", name)
		}
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/http.md does not list %s", name)
		}
	}
}
