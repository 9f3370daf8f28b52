package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// startFleet starts a fleet for one test.
func startFleet(t *testing.T, query time.Duration, cached bool) *fleet {
	t.Helper()
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	server, err := backends.Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context())
	if err != nil {
		t.Fatal(errors.Join(err, server.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	s, err := openShop(t.Context(), db, query)
	if err != nil {
		t.Fatal(err)
	}
	f, err := stage{server, db, s}.start(t.Context(), 0, cached)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// answered is a response that has been read.
type answered struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url string) answered {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{response.StatusCode, response.Header, string(body)}
}

func price(t *testing.T, body string) int {
	t.Helper()
	var p Product
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p.Cents
}

func TestTheInstancesAnswerInTurnAndShareTheirPages(t *testing.T) {
	f := startFleet(t, 0, true)
	how := make(map[string]string)
	for range instances {
		got := ask(t, http.MethodGet, f.url+"/products/42")
		how[got.header.Get("Instance")] = got.header.Get("Cache-Status")
		if price(t, got.body) != 1654 {
			t.Errorf("the page is %s", got.body)
		}
	}
	if len(how) != instances || !strings.Contains(how["1"], "stored") {
		t.Errorf("who answered, and how: %v", how)
	}
	for _, path := range []string{"/products/42", "/products/43"} { // `curl -I`, of what is stored and of what is not
		if got := ask(t, http.MethodHead, f.url+path); got.status != http.StatusOK {
			t.Errorf("HEAD %s: %d", path, got.status)
		}
	}
	for path, want := range map[string]int{"/products/0": 404, "/products/x": 400, "/categories/3": 200, "/orders": 404} {
		if got := ask(t, http.MethodGet, f.url+path); got.status != want {
			t.Errorf("%s: %d: %s", path, got.status, got.body)
		}
	}
}

func TestEveryInstanceShowsANewPriceAtOnce(t *testing.T) {
	f := startFleet(t, 0, true)
	for cents := 1; cents <= 5; cents++ {
		for range instances { // the page is cached
			ask(t, http.MethodGet, f.url+"/products/42")
			ask(t, http.MethodGet, f.url+"/categories/43")
		}
		got := ask(t, http.MethodPut, f.url+"/products/42?cents="+strconv.Itoa(cents))
		if got.status != http.StatusNoContent {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		for range instances {
			if body := ask(t, http.MethodGet, f.url+"/products/42").body; price(t, body) != cents {
				t.Errorf("after it became %d, the product is %s", cents, body)
			}
			if body := ask(t, http.MethodGet, f.url+"/categories/43").body; !strings.Contains(body, `"cents":`+strconv.Itoa(cents)+`}`) {
				t.Errorf("after it became %d, the list is %s", cents, body)
			}
		}
	}
	for path, want := range map[string]int{"/products/42": 400, "/products/42?cents=x": 400, "/products/0?cents=1": 404} {
		if got := ask(t, http.MethodPut, f.url+path); got.status != want {
			t.Errorf("PUT %s: %d: %s", path, got.status, got.body)
		}
	}
}

func TestACrowdDoesNotMakeOnePageTwiceAtOnce(t *testing.T) {
	for _, cached := range []bool{true, false} {
		f := startFleet(t, 100*time.Millisecond, cached)
		const crowd = 60
		var asking sync.WaitGroup
		for range crowd {
			asking.Go(func() { ask(t, http.MethodGet, f.url+"/products/7") }) // owner: the test; stop: it ends by itself; joined below
		}
		asking.Wait()
		total, most := f.calls.counted()
		if cached && (most != 1 || total > crowd/2) || !cached && total != crowd {
			t.Errorf("cached %v: %d handler calls, up to %d at once", cached, total, most)
		}
	}
}

func TestEachInstanceHasMetrics(t *testing.T) {
	f := startFleet(t, 0, true)
	for range instances {
		ask(t, http.MethodGet, f.url+"/products/42")
	}
	for _, i := range f.instances {
		text := ask(t, http.MethodGet, i.url+"/metrics").body
		for _, want := range []string{
			`cacheguard_http_requests_total{cache="pages",result="loaded",route="/products/{id}"}`,
			`cacheguard_loads_in_flight{cache="pages"} 0`, `cacheguard_requests_total{cache="pages",result="hit"}`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s/metrics has no %s", i.url, want)
			}
		}
	}
}

func TestTheLoadIsCompared(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	var out, problems strings.Builder
	if code := new(settings).program().Execute(t.Context(), []string{"-short"}, &out, &problems); code != 0 {
		t.Errorf("exit code %d: %s\n%s", code, problems.String(), out.String())
	}
	for _, want := range []string{"with the middleware", "handler calls", "database queries", "p99", "never two for one page"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output:\n%s", want, out.String())
		}
	}
}

// onText is a writer that calls f when it is written the text.
type onText struct {
	text string
	f    func()
}

func (w onText) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.f()
	}
	return len(p), nil
}

func TestAnInterruptEndsTheProgram(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://"+shared.Addr())
	for args, text := range map[string]string{"-port 0": "Ctrl-C ends it", "-attack": "instances"} {
		ctx, interrupt := context.WithCancel(t.Context())
		var problems strings.Builder
		code := new(settings).program().Execute(ctx, strings.Fields(args), onText{text, interrupt}, &problems)
		if code != 130 || !strings.Contains(problems.String(), "interrupted") {
			t.Errorf("%s: exit code %d: %s", args, code, problems.String())
		}
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-port -1", "-query 2s", "-rate 0", "-duration 1ms"} {
		var problems strings.Builder
		new(settings).program().Execute(t.Context(), strings.Fields(args), &problems, &problems)
		if flag := strings.Fields(args)[0]; !strings.HasPrefix(problems.String(), "chiapi: "+flag+": ") {
			t.Errorf("%q: it says %q", args, problems.String())
		}
	}
}
