package middleware

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// What forbids to store counts in its strictest reading, whatever stands behind it.
var forbidding = []string{
	`private="\"x"`, "private=\"\x80\"", `private="a b/c"`, `private=x/y`, `private="x", private`, `private=`, `private="x`, "no-store=x", `no-store="x"`, "no-store=1", `no-store="`,
	"must-understand=x, no-store", "public=x, private", "private;x", "no-store;x=1", "PRIVATE=\"\"",
}

// forbiddingMember are more of these, of a field that is a Dictionary.
var forbiddingMember = []string{"private=x", "private=()", `private=("x")`, "private=1", "private=:eA==:", "no-store=x", "no-store=1", "no-store=()", `no-store="x"`, `private, private="x"`}

func TestAMalformedDirectiveThatForbidsIsHeeded(t *testing.T) {
	t.Parallel()
	type case3 struct{ field, value string }
	var cases []case3
	for _, value := range forbidding {
		cases = append(cases, case3{"Cache-Control", "max-age=60, " + value})
	}
	for _, value := range append(forbiddingMember, `private="\"x"`, `private;x`, `no-store;x=1`) {
		cases = append(cases, case3{"Cdn-Cache-Control", "max-age=60, " + value}, case3{"Shop-Cache-Control", "max-age=60, " + value})
	}
	for _, c := range cases {
		for _, confirmed := range []bool{false, true} {
			mine := false
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Etag", `"a"`)
				w.Header().Set("Cache-Control", "max-age=60")
				if mine {
					w.Header()[c.field] = []string{c.value}
				} else if confirmed {
					w.Header().Set("Cache-Control", "no-cache")
				}
				if mine && r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				_, _ = fmt.Fprint(w, "page")
			})
			f := newFleet(t, 1, Config{Target: "Shop-Cache-Control"}, p)
			if confirmed {
				f.warm("/")
			}
			mine = true
			f.warm("/")
			calls := p.calls.Load()
			f.get("/")
			expect.Equal(t, fmt.Sprintf("%s: %q, by a 304: %v: asked again", c.field, c.value, confirmed), p.calls.Load() > calls, true)
		}
	}
}

func TestAnUnparsableExtensionIsIgnored(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stale-if-error", "stale-while-revalidate", "min-fresh", "max-stale", "unknown"} {
		for _, value := range []string{"", "=", "=-1", "=1.5", "=x", `="x"`, "=10, " + name + "=x", "=10, " + name + "=20"} {
			p := newPage(says("page", "Cache-Control: max-age=60, "+name+value))
			f := newFleet(t, 1, Config{}, p)
			f.warm("/")
			expect.Equal(t, name+value, isHit(f.get("/")), true)
		}
	}
}
