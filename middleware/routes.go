package middleware

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// routedForHead reports whether a router in front has already chosen the handler by the method HEAD.
func routedForHead(r *http.Request) bool {
	if r.Method != http.MethodHead {
		return false
	}
	if c := chi.RouteContext(r.Context()); c != nil && c.RouteMethod == http.MethodHead {
		return true
	}
	return strings.HasPrefix(r.Pattern, http.MethodHead+" ")
}

// route is the pattern of the route that answered, if the router is one that says so.
func route(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil {
		return c.RoutePattern()
	}
	return r.Pattern
}
