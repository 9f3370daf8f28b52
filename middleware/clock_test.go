package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/middleware"
)

// aging is a page behind a Cache, in an environment whose clock the test moves.
type aging struct {
	*testing.T
	env     *cacheguardtest.Env
	handler http.Handler
	calls   atomic.Int64
}

func newAging(t *testing.T, cacheControl string, length int) *aging {
	t.Helper()
	a := &aging{T: t, env: cacheguardtest.New(t, cacheguard.Config{})}
	pages, err := middleware.New(a.env.Guard, middleware.Config{MaxBody: 64 << 10, SliceBytes: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	a.handler = pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := a.calls.Add(1)
		w.Header().Set("Cache-Control", cacheControl)
		w.Header().Set("ETag", `"v"`)
		if length > 0 {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("a", length)))
			return
		}
		_, _ = fmt.Fprint(w, n)
	}))
	return a
}

// get returns the body, and the Age.
func (a *aging) get() (body, age string) {
	a.Helper()
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, httptest.NewRequestWithContext(a.Context(), http.MethodGet, "/", http.NoBody))
	a.env.Settle()
	return w.Body.String(), w.Header().Get("Age")
}

func (a *aging) want(what, body, age string) {
	a.Helper()
	gotBody, gotAge := a.get()
	expect.Equal(a, what+": body", gotBody, body)
	expect.Equal(a, what+": Age", gotAge, age)
}

func TestAPageGrowsOldByTheClockOfItsTest(t *testing.T) {
	t.Parallel()
	a := newAging(t, "max-age=60, stale-while-revalidate=600", 0)
	a.want("made", "1", "")
	a.want("at once", "1", "0")
	a.env.Advance(59 * time.Second)
	a.want("fresh to the end", "1", "59")
	a.env.Advance(2 * time.Second)
	a.want("stale while it is replaced", "1", "61")
	a.want("replaced", "2", "0")
	a.env.Advance(time.Hour)
	a.want("too old for anything", "3", "")
}

func TestAPageInSlicesGrowsOldByTheClockOfItsTest(t *testing.T) {
	t.Parallel()
	a := newAging(t, "max-age=60", 200<<10)
	body := func(what string) {
		t.Helper()
		got, _ := a.get()
		expect.Equal(t, what, len(got), 200<<10)
	}
	body("made")
	body("once more")
	calls := a.calls.Load()
	a.env.Advance(59 * time.Second)
	body("fresh to the end")
	expect.Equal(t, "calls while it is fresh", a.calls.Load(), calls)
	a.env.Advance(2 * time.Second)
	body("stale")
	expect.Equal(t, "it was made anew", a.calls.Load() > calls, true)
}
