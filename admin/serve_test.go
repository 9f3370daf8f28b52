package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestThePolicyLetsThePageRunWhatItHasAndNothingElse(t *testing.T) {
	t.Parallel()
	h := NewHandler(Config{Guards: []*cacheguard.Guard{newGuard(t, cacheguard.Config{})}, Lockers: []Locker{newMutex(t)}, Allow: everything})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, here+"/", nil))
	csp, page := w.Header().Get("Content-Security-Policy"), w.Body.String()
	for _, tag := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(page, "<"+tag+">")
		text, rest, found := strings.Cut(rest, "</"+tag+">")
		if !found || !strings.Contains(csp, "'"+hash(text)+"'") {
			t.Errorf("%s is not what the policy %q names", tag, csp)
		}
		if strings.Contains(rest, "<"+tag) {
			t.Errorf("there is another %s", tag)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(page, "style=") || strings.Contains(page, "onclick") {
		t.Errorf("inline handlers or styles: %s", csp)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"} {
		expect.Equal(t, name, w.Header().Get(name), want)
	}
}

func TestItIsAnHTTPHandlerWhereverItIsMounted(t *testing.T) {
	t.Parallel()
	var h http.Handler = New(newGuard(t, cacheguard.Config{}))
	mux := http.NewServeMux()
	mux.Handle("/exact", h)
	mux.Handle("/slash/", h)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", h))
	for _, path := range []string{"/exact", "/slash/", "/slash/more", "/stripped/"} {
		if page := get(t, mux, path, http.StatusOK); !strings.Contains(page, "<!doctype html>") {
			t.Errorf("%s: %s", path, page)
		}
		if data := get(t, mux, path+"?view=data", http.StatusOK); !strings.HasPrefix(data, `{"time"`) {
			t.Errorf("%s: %s", path, data)
		}
	}
	get(t, mux, "/exact?view=other", http.StatusNotFound)
}

func TestAHostileKeyIsText(t *testing.T) {
	t.Parallel()
	g := newGuard(t, cacheguard.Config{})
	h := New(g)
	const evil = `</script><script>alert(1)</script><img src=x onerror=alert(2)>` + "\u202e\x00\xff"
	keep(t, g, evil)
	for _, text := range []string{
		get(t, h, "/?view=key&guard=0&key="+url.QueryEscape(evil), http.StatusOK), get(t, h, "/?view=data", http.StatusOK),
		get(t, h, "/?view="+url.QueryEscape(evil), http.StatusNotFound), get(t, h, "/", http.StatusOK),
	} {
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
			t.Errorf("markup in %s", text)
		}
	}
}

func TestAKeyThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	h := New(newGuard(t, cacheguard.Config{}))
	get(t, h, "/?view=key&guard=0&key="+strings.Repeat("x", longest+1), http.StatusBadRequest)
	get(t, h, "/?view=key&guard=0&key=", http.StatusBadRequest)
	for _, number := range []string{"", "1", "-1", "x", strings.Repeat("9", 100)} {
		get(t, h, "/?view=key&key=a&guard="+number, http.StatusNotFound)
	}
	get(t, h, "/?view=lock&locker=0&name=a", http.StatusNotFound)
}

func TestACrowdThatLooksIsNoTrouble(t *testing.T) {
	t.Parallel()
	h := New(newGuard(t, cacheguard.Config{}))
	for range mostBusy {
		h.busy <- struct{}{}
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			get(t, h, "/?view=key&guard=0&key=a", http.StatusServiceUnavailable)
			get(t, h, "/?view=data", http.StatusOK)
		})
	}
	all.Wait()
	<-h.busy
	get(t, h, "/?view=key&guard=0&key=a", http.StatusOK)
	expect.Equal(t, "places taken", len(h.busy), mostBusy-1)
}

func TestWhatIsShownToACrowdIsMadeOnce(t *testing.T) {
	t.Parallel()
	h := New(newGuard(t, cacheguard.Config{}))
	h.shown.mu.Lock()
	h.shown.made, h.shown.text = h.shown.sampled.Add(pause*1000), []byte("made before")
	h.shown.mu.Unlock()
	expect.Equal(t, "data", get(t, h, "/?view=data", http.StatusOK), "made before")
}

func TestNothingToShowIsNoError(t *testing.T) {
	t.Parallel()
	h := New(nil, nil)
	expect.Equal(t, "guards", len(look(t, h).Guards), 0)
	get(t, h, "/", http.StatusOK)
	h = NewHandler(Config{Lockers: []Locker{nil}, Pages: []Pages{nil}})
	expect.Equal(t, "data", fmt.Sprint(len(look(t, h).Lockers), len(look(t, h).Pages)), "0 0")
}

func TestAGuardThatIsClosedIsShown(t *testing.T) {
	t.Parallel()
	closed := newGuard(t, cacheguard.Config{})
	h := New(closed)
	expect.ErrorIs(t, closed.Close())
	expect.Equal(t, "guards", len(look(t, h).Guards), 1)
	get(t, h, "/?view=key&guard=0&key=a", http.StatusOK)
}
