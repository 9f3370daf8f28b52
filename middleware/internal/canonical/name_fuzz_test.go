package canonical

import (
	"net/url"
	"strings"
	"testing"
)

// A name is its own normal form, says the same as what was sent, and its parts do not reach into one another.
func FuzzName(f *testing.F) {
	for _, sent := range [][3]string{
		{"Shop.Example:80", "/a/../b", "?x=%3d"}, {"[::FFFF:1.2.3.4%25en0]:443", "/%2e%2E/%2f%7E", "?%zz"}, {"b%C3%9Ccher.example.", "", "?"},
		{"bücher.example:080", "*", ""}, {"a..", "//x/.", "?a?b/../c"}, {":", "/caf\xc3\xa9", "?\"["}, {"a:b:c", "/%", "?%4"}, {"[", "/.", "?%"},
		{"a%2Fb", "/a\x00b", "?\n"}, {"::443", "/.a/..b/...", "?&;=+"}, {"x:0", "/%80", "?%C3%A9"}, {"İ.example", "/a%", "?A"},
	} {
		f.Add(sent[0], sent[1], sent[2])
	}
	f.Fuzz(func(t *testing.T, host, path, query string) {
		if query != "" {
			query = "?" + query
		}
		n := nameOf(host, path, query)
		if again := nameOf(n.host, n.path, n.query); again != n {
			t.Errorf("%q is named %q, and that %q", []string{host, path, query}, n, again)
		}
		for _, scheme := range []string{"http", "https"} {
			if again := nameOf(normalHost(host, scheme), path, query); again != n {
				t.Errorf("%s, %q is named %q, and the canonical one %q", scheme, host, n, again)
			}
		}
		if !strings.ContainsAny(host, "/?#@\\\n") && strings.ContainsAny(n.host, "/?#@\\\n") { // else the request is odd
			t.Errorf("the host %q is named %q", host, n.host)
		}
		if !strings.HasPrefix(n.path, "/") || strings.ContainsAny(n.path+strings.TrimPrefix(n.query, "?"), "#\\\n \x00\"\x7f") || strings.Contains(n.path+"/", "/../") {
			t.Errorf("%q, %q is named %q", path, query, n)
		}
		sent, err := url.PathUnescape(path)
		if named, _ := url.PathUnescape(n.path); err == nil && strings.HasPrefix(path, "/") && !strings.Contains(sent, "/.") && named != sent {
			t.Errorf("%q is named %q", path, n.path)
		}
		wanted, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
		if named, _ := url.ParseQuery(strings.TrimPrefix(n.query, "?")); err == nil && named.Encode() != wanted.Encode() {
			t.Errorf("%q is named %q", query, n.query)
		}
	})
}
