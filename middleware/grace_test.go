package middleware

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Without StaleIfError, a page that was fresh stands in for a failure for a few seconds. A page that was never fresh is not kept for that.
func TestByDefaultAPageThatWasFreshStandsInForAFailureForAMoment(t *testing.T) {
	t.Parallel()
	for control, c := range map[string]struct {
		cfg      Config
		standsIn bool
	}{
		"max-age=1":                    {Config{}, true},
		"max-age=1 ":                   {Config{StaleIfError: -1}, false},
		"max-age=1, must-revalidate":   {Config{}, false},
		"s-maxage=1":                   {Config{}, false},
		"max-age=1, stale-if-error=0":  {Config{}, false},
		"max-age=0":                    {Config{}, false},
		"max-age=1, no-cache=\"\"":     {Config{}, false},
		"max-age=0, stale-if-error=60": {Config{}, true},
	} {
		t.Run(control, func(t *testing.T) {
			t.Parallel()
			var now atomic.Pointer[http.HandlerFunc] // it could not be replaced after an answer, because an abort is none
			be := func(h http.HandlerFunc) { now.Store(&h) }
			be(says("page", "Cache-Control: "+control))
			p := newPage(func(w http.ResponseWriter, r *http.Request) { (*now.Load())(w, r) })
			f := newFleet(t, 1, c.cfg, p)
			f.warm("/")
			redistest.Await(t, "it is stale", func() bool {
				return !strings.Contains(f.get("/", "Cache-Control: only-if-cached").cacheStatus(), "; hit")
			})
			be(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			a, err := f.try(0, http.MethodGet, "/")
			expect.Equal(t, "the page", err == nil && a.body == "page", c.standsIn)
			be(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusServiceUnavailable) })
			expect.Equal(t, "instead of a 503", f.get("/").body == "page", c.standsIn)
		})
	}
}

func TestWhatIsStaleFromTheBeginningCostsRedisNothingByDefault(t *testing.T) {
	t.Parallel()
	p := newPage(says("mine", "Expires: 0"))
	f := newFleet(t, 1, Config{PassFor: -1}, p)
	a, b := f.get("/"), f.get("/")
	expect.Equal(t, "Cache-Status", a.cacheStatus()+b.cacheStatus(), strings.Repeat("cacheguard; fwd=uri-miss; fwd-status=200; detail=stale", 2))
}
