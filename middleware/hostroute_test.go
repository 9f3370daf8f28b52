package middleware

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// http.ServeMux compares hosts letter by letter, and may have chosen another handler in front.
func TestARouterInFrontThatReadsTheHostCannotBeDeceivedByItsLetters(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	routes := http.NewServeMux()
	routes.Handle(host+"/", f.caches[0].Handler(says("the shop", fresh)))
	routes.Handle("/", f.caches[0].Handler(says("somebody else", fresh)))
	f.front(routes)
	f.warm("/", "Host: "+strings.ToUpper(host))
	expect.Equal(t, "the others", f.get("/").body, "the shop")
	expect.ErrorIs(t, f.invalidate("/"))
	expect.Equal(t, "invalidated with the page", isHit(f.get("/", "Host: "+strings.ToUpper(host))), false)
}
