package middleware

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A POST waits for its invalidation. Where Redis hangs, that is RedisTimeout, but only until the circuit breaker has opened.
func TestAPostAsksNothingOfARedisThatHangs(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, shared.Addr())
	open := make(chan bool, 100)
	guard, err := cacheguard.New(proxy.Client(t), cacheguard.Config{
		Prefix: "test-" + rand.Text(), RedisTimeout: 50 * time.Millisecond, Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventBreaker, func(_ context.Context, e cacheguard.Event) { open <- e.On })}, // it hangs
	})
	expect.Equal(t, "error", err, nil)
	defer guard.Close()
	cache, err := New(guard, Config{})
	expect.Equal(t, "error", err, nil)
	p := newPage(says("done", fresh))
	handler := cache.Handler(p)
	ask := func(method string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		expect.Equal(t, method, w.Body.String(), "done")
	}
	ask(http.MethodGet)
	hung := proxy.On(func([]string) bool { return true }, redistest.Hold)
	for opened := false; !opened; {
		ask(http.MethodPost) // a process that gets nothing else finds out, too
		select {
		case opened = <-open:
		default:
		}
	}
	redistest.Await(t, "no script comes while a hundred of them are answered, once those that were sent before have come", func() bool {
		before := proxy.Commands()["evalsha"]
		for range 100 {
			ask(http.MethodPost)
		}
		return proxy.Commands()["evalsha"] == before
	})
	hung.Release()
	redistest.Await(t, "the breaker has closed", func() bool {
		select {
		case is := <-open:
			return !is
		default:
			return false
		}
	})
	calls := p.calls.Load()
	ask(http.MethodGet)
	expect.Equal(t, "calls for the page, which the POSTs changed", p.calls.Load()-calls, 1)
}
