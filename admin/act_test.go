package admin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/mutex"
)

func TestNothingCanBeDoneUnlessItIsAllowed(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	keep(t, g, "a")
	for name, h := range map[string]*Handler{
		"by default": New(g),
		"other actions": NewHandler(Config{Guards: []*cacheguard.Guard{g}, Allow: func(_ *http.Request, a Action) bool {
			return a == Bypass || a == Revoke
		}}),
	} {
		status, said := post(h, "invalidate-key", `{"name":"a"}`, nil)
		expect.Equal(t, name+": "+said, status, http.StatusForbidden)
		if page := get(t, h, "/", http.StatusOK); strings.Contains(page, `id="invalidate-key"`) {
			t.Errorf("%s: the page has a button for it", name)
		}
	}
	if page := get(t, New(g), "/", http.StatusOK); strings.Contains(page, New(g).token) || !strings.Contains(page, `name="cacheguard-token" content=""`) {
		t.Error("a page that only reads has a token")
	}
	expect.Equal(t, "still there", isCached(t, g, "a"), true)
}

func TestAnActionComesFromThePageItself(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	keep(t, g, "a")
	h := NewHandler(Config{Guards: []*cacheguard.Guard{g}, Allow: everything})
	for name, change := range map[string]func(*http.Request){
		"no token":           func(r *http.Request) { r.Header.Del(tokenHeader) },
		"another token":      func(r *http.Request) { r.Header.Set(tokenHeader, New().token) },
		"another site":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a sibling's domain": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"an old browser's": func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://evil.example")
		},
	} {
		status, said := post(h, "invalidate-key", `{"name":"a"}`, change)
		expect.Equal(t, name+": "+said, status, http.StatusForbidden)
	}
	for name, change := range map[string]func(*http.Request){
		http.MethodPut: func(r *http.Request) { r.Method = http.MethodPut },
		"OPTIONS":      func(r *http.Request) { r.Method = http.MethodOptions },
	} {
		status, _ := post(h, "invalidate-key", `{"name":"a"}`, change)
		expect.Equal(t, name, status, http.StatusMethodNotAllowed)
	}
	expect.Equal(t, "still there", isCached(t, g, "a"), true)
	status, said := post(h, "invalidate-key", `{"name":"a"}`, nil)
	expect.Equal(t, said, status, http.StatusOK)
	expect.Equal(t, "still there", isCached(t, g, "a"), false)
}

// acting is a page that may do everything, and what it acts on.
type acting struct {
	guard *cacheguard.Guard
	locks *mutex.Locker
	page  *Handler
	log   bytes.Buffer
}

func newActing(t *testing.T) *acting {
	t.Helper()
	a := &acting{guard: newGuard(t, cacheguard.Config{}), locks: newMutex(t)}
	_, err := cacheguard.NewCache(a.guard, cacheguard.CacheConfig[int, string]{
		Name: "product", Load: func(context.Context, int) (string, error) { return "", nil },
	})
	expect.ErrorIs(t, err)
	a.page = NewHandler(Config{
		Guards: []*cacheguard.Guard{a.guard}, Lockers: []Locker{a.locks}, Allow: everything,
		Logger: slog.New(slog.NewTextHandler(&a.log, nil)),
	})

	return a
}

// do sends an action, and wants the status.
func (a *acting) do(t *testing.T, name, body string, want int) (said string) {
	t.Helper()
	status, said := post(a.page, name, body, nil)
	expect.Equal(t, name+" "+body+": "+said, status, want)
	return said
}

func TestEachActionDoesWhatItSays(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	g, prefix := a.guard, look(t, a.page).Guards[0].Prefix
	for name, body := range map[string]string{
		"invalidate-key": `{"name":"a"}`, "invalidate-tag": `{"name":"all"}`, "invalidate-all": fmt.Sprintf(`{"name":%q}`, prefix),
	} {
		keep(t, g, "a")
		a.do(t, name, body, http.StatusOK)
		expect.Equal(t, "still there after "+name, isCached(t, g, "a"), false)
	}
	a.do(t, "invalidate-cache", `{"name":"product"}`, http.StatusOK)
	a.do(t, "bypass", `{"on":true}`, http.StatusOK)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, true)
	a.do(t, "bypass", `{"on":false}`, http.StatusOK)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, false)
	a.do(t, "bypass-fleet", `{"seconds":600}`, http.StatusOK)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, true)
	a.do(t, "bypass-fleet", `{"seconds":0}`, http.StatusOK)
	expect.Equal(t, "bypassed", g.Stats().Bypassed, false)
	lease, err := a.locks.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	if said := a.do(t, "revoke", `{"name":"import"}`, http.StatusOK); !strings.Contains(said, "1 holders") {
		t.Error(said)
	}
	<-lease.Context().Done()
	if lines := strings.Count(a.log.String(), "cacheguard: admin"); lines != 9 {
		t.Errorf("%d lines: %s", lines, &a.log)
	}
}

func TestAnActionThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	for name, bodies := range map[string][]string{
		"invalidate-key":   {`{"name":""}`, `{`, fmt.Sprintf(`{"name":%q}`, strings.Repeat("x", longest+1)), fmt.Sprintf(`{"name":%q}`, strings.Repeat("x", maxBody))},
		"invalidate-tag":   {`{}`},
		"invalidate-cache": {`{}`},
		"invalidate-all":   {`{}`, `{"name":"another"}`},
		"bypass-fleet":     {`{"seconds":-1}`, `{"seconds":90000}`, `{"seconds":"x"}`},
		"revoke":           {`{}`},
	} {
		for _, body := range bodies {
			a.do(t, name, body, http.StatusBadRequest)
		}
	}
	a.do(t, "invalidate-key", `{"guard":1,"name":"a"}`, http.StatusNotFound)
	a.do(t, "invalidate-key", `{"guard":-1,"name":"a"}`, http.StatusNotFound)
	a.do(t, "revoke", `{"locker":1,"name":"a"}`, http.StatusNotFound)
	a.do(t, "drop", `{}`, http.StatusNotFound)
	a.do(t, "invalidate-cache", `{"name":"another"}`, http.StatusBadGateway)
}
