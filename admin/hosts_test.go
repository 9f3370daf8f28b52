package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/mutex"
)

// ask asks as a browser does that takes the host for this server.
func (a *acting) ask(page *Handler, host, method, url, body string) (status int, said string) {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Host = host
	r.Header.Set(tokenHeader, page.token)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestASiteThatMakesItsNameStandForTheServerNeitherReadsNorActs(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	keep(t, a.guard, "a")
	for _, host := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example.", "", "localhost@evil.example", "shop.example"} {
		for _, url := range []string{"/", "/?view=data", "/?view=key&guard=0&key=a"} {
			status, said := a.ask(a.page, host, http.MethodGet, url, "")
			expect.Equal(t, host+url+": "+said, status, http.StatusMisdirectedRequest)
			if strings.Contains(said, a.page.token) || !strings.Contains(said, "Config.Hosts") {
				t.Errorf("%s%s: %s", host, url, said)
			}
		}
		status, said := a.ask(a.page, host, http.MethodPost, "/?do=invalidate-key", `{"name":"a"}`)
		expect.Equal(t, host+": "+said, status, http.StatusMisdirectedRequest)
	}
	expect.Equal(t, "still there", isCached(t, a.guard, "a"), true)
}

func TestAddressesLocalhostAndTheNamedHostsMayAsk(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	named := NewHandler(Config{Guards: []*cacheguard.Guard{a.guard}, Hosts: []string{"Ops.example"}})
	all := NewHandler(Config{Guards: []*cacheguard.Guard{a.guard}, Hosts: []string{"*"}})
	for host, pages := range map[string][]*Handler{
		"localhost": {a.page, named}, "LOCALHOST:80": {a.page, named}, "127.0.0.1": {a.page, named}, "10.1.2.3:8080": {a.page, named},
		"[::1]:8080": {a.page, named}, "[fe80::1]": {a.page, named}, "ops.example": {named, all}, "ops.example:443": {named, all},
		"OPS.example.": {named, all}, "shop.example": {all},
	} {
		for _, page := range pages {
			status, said := a.ask(page, host, http.MethodGet, "/?view=data", "")
			expect.Equal(t, host+": "+said, status, http.StatusOK)
		}
	}
}

func TestNamesThatAreLongOrNoTextAreCutAndCannotBeChosen(t *testing.T) {
	t.Parallel()
	locks := newMutex(t)
	h := NewHandler(Config{Lockers: []Locker{locks}})
	for name, cut := range map[string]bool{
		"import": false, "nightly\nimport": false, strings.Repeat("x", longestShown): false, strings.Repeat("ü", longestShown): true,
		"odd\xffname": true, "x" + strings.Repeat("y", 1<<15): true,
	} {
		expect.ErrorIs(t, locks.Do(t.Context(), name, func(context.Context, *mutex.Lease) error {
			shown := look(t, h).Lockers[0].Locks[0]
			expect.Equal(t, fmt.Sprintf("%.20q is cut", name), shown.Cut, cut)
			if len(shown.Name) > longestShown || !cut && shown.Name != name {
				t.Errorf("%.20q: %.20q of %d bytes", name, shown.Name, len(shown.Name))
			}
			return nil
		}))
	}
}

func TestThoseWhoLookDoNotKeepOthersFromActing(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	for range mostBusy {
		a.page.busy <- struct{}{}
	}
	get(t, a.page, "/?view=key&guard=0&key=a", http.StatusServiceUnavailable)
	a.do(t, "invalidate-key", `{"name":"a"}`, http.StatusOK)
}
