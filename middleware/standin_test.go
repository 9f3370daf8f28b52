package middleware

import (
	"net/http"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// A client may accept a stale page for itself only. Others that wait for the same page have not accepted it.
func TestAStalePageStandsInOnlyForRequestsThatAcceptIt(t *testing.T) {
	t.Parallel()
	p := newPage(says("stale", fresh, "Age: 70", `ETag: "a"`))
	f := newFleet(t, 2, Config{}, p)
	f.warm("/")
	<-p.begun
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	p.held()
	accepts := f.async(0, "/", "Cache-Control: stale-if-error=600")
	<-p.begun
	others := []<-chan answer{f.async(0, "/"), f.async(1, "/")}
	f.joins(1)
	f.waits("/", 1)
	close(p.hold)
	expect.Equal(t, "the client that accepts it", (<-accepts).body, "stale")
	for _, other := range others {
		expect.Equal(t, "a client that does not", (<-other).StatusCode, http.StatusServiceUnavailable)
	}
	expect.Equal(t, "reported as stale", f.count(Stale), 1)
}

func TestAStalePageThatAllowsItStandsInForAllRequests(t *testing.T) {
	t.Parallel()
	p := newPage(says("stale", "Cache-Control: max-age=60, stale-if-error=600", "Age: 70"))
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	<-p.begun
	p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	p.held()
	replies := []<-chan answer{f.async(0, "/")}
	<-p.begun
	replies = append(replies, f.async(0, "/"))
	f.joins(1)
	close(p.hold)
	for _, reply := range replies {
		expect.Equal(t, "body", (<-reply).body, "stale")
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
	expect.Equal(t, "reported as stale", f.count(Stale), 2)
}
