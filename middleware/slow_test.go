package middleware

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

// Without a cache, slow requests hold up only themselves.
func TestSlowRequestsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	p := newPage(says("slow")).held()
	f := newFleetOn(t, shared, 1, Config{}, cacheguard.Config{MaxLoads: 2}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			p.ServeHTTP(w, r)
			return
		}
		says("page", fresh)(w, r)
	}))
	var slow []<-chan answer
	for _, path := range []string{"/slow1", "/slow2", "/slow3"} {
		slow = append(slow, f.async(0, path))
	}
	for range slow {
		<-p.begun
	}
	expect.Equal(t, "a page", f.get("/").body, "page")
	close(p.hold)
	for _, c := range slow {
		expect.Equal(t, "a slow one", (<-c).body, "slow")
	}
}

func TestThePanicOfAHandlerCarriesItsStack(t *testing.T) {
	t.Parallel()
	recovered := make(chan any, 1)
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	cached := f.caches[0].Handler(http.HandlerFunc(handlerWithABug))
	f.servers[0].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { recovered <- recover() }()
		cached.ServeHTTP(w, r)
	})
	f.get("/")
	err, ok := (<-recovered).(error)
	if !ok || !strings.Contains(err.Error(), "handlerWithABug") || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("recovered %v", err)
	}
}

func handlerWithABug(_ http.ResponseWriter, r *http.Request) {
	_ = r.URL.Path[len(r.URL.Path)]
}
