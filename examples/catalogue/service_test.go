package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestABadRequestIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	s, asked := openProducts(t)
	i := start(t, s, cacheguardtest.New(t, cacheguard.Config{}).Redis)
	for _, bad := range []request{
		{method: "GET", path: "/products/none"},
		{method: "GET", path: "/products/0"},
		{method: "GET", path: "/search?q=ab"},
		{method: "GET", path: "/search?q=" + strings.Repeat("a", 51)},
		{method: "GET", path: "/cart?ids=1,,2"},
		{method: "GET", path: "/cart?ids=1" + strings.Repeat(",1", 100)},
		{method: "PUT", path: "/products/42", body: "{"},
		{method: "PUT", path: "/products/42", body: `{"name": "Boot", "cents": 1}`},
		{method: "PUT", path: "/products/none", body: `{"name": "Boot", "category": "boots"}`},
		{method: "PUT", path: "/products/42/price?cents=-1"},
		{method: "POST", path: "/categories/boots/discount?percent=100"},
		{method: "DELETE", path: "/products/-1"},
	} {
		i.write(http.StatusBadRequest, bad.method, bad.path, bad.body)
	}
	expect.Equal(t, "queries", asked.count.Load(), 0)
}

func TestADatabaseThatFailsIsNoAbsence(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	i := start(t, s, env.Redis)
	if err := s.db.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.write(http.StatusInternalServerError, http.MethodGet, "/products/42", "")
	i.write(http.StatusInternalServerError, http.MethodDelete, "/products/42", "")
}

// overdue is a context whose deadline comes when the test says so.
type overdue struct {
	context.Context
	now chan struct{}
}

func (o overdue) Done() <-chan struct{} { return o.now }

func (o overdue) Err() error {
	select {
	case <-o.now:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestADiscountIsToBeRepeatedOnlyIfItWasNotGiven(t *testing.T) {
	t.Parallel()
	const path = "/categories/boots/discount?percent=50"
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, asked := openProducts(t)
	i := start(t, s, env.Redis)
	env.Outage(true)
	i.write(http.StatusServiceUnavailable, http.MethodPost, path, "")
	env.Outage(false)
	expect.Equal(t, "queries", asked.count.Load(), 0)

	late := overdue{t.Context(), make(chan struct{})}
	asked.begun = func(ctx context.Context) {
		close(late.now)
		<-ctx.Done()
	}
	w := httptest.NewRecorder()
	i.handler.ServeHTTP(w, httptest.NewRequestWithContext(late, http.MethodPost, path, http.NoBody))
	expect.Equal(t, "the deadline comes during the statement", w.Code, http.StatusGatewayTimeout)
	asked.begun = nil
	env.Settle()
	expect.Equal(t, "intents that stand", i.catalogue.guard.Stats().Intents, 0)
}

func TestAWriteThatOthersDoNotHearOfIsNamedBeforeItIsMade(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, asked := openProducts(t)
	i := start(t, s, env.Redis)
	i.shows("/categories/boots", 42) // is cached
	stand := 0
	asked.begun = func(context.Context) { stand = i.catalogue.guard.Stats().Intents } // of the last query, which writes
	for _, write := range []request{
		{method: "PUT", path: "/products/42", body: `{"name": "Boot", "category": "boots", "cents": 1}`},
		{method: "POST", path: "/categories/boots/discount?percent=50"},
		{method: "DELETE", path: "/products/42"},
	} {
		stand = 0
		status, _ := i.do(write.method, write.path, write.body)
		expect.Equal(t, write.method+" succeeds", status < http.StatusMultipleChoices, true)
		expect.Equal(t, write.method+": intents during the statement", stand, 1)
	}
	expect.Equal(t, "intents that stand", i.catalogue.guard.Stats().Intents, 0)
}

func TestHealthAsksTheDatabase(t *testing.T) {
	t.Parallel()
	s, _ := openProducts(t)
	i := start(t, s, cacheguardtest.New(t, cacheguard.Config{}).Redis)
	i.write(http.StatusOK, http.MethodGet, "/health", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no database answers in time
	w := httptest.NewRecorder()
	i.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/health", http.NoBody))
	expect.Equal(t, "without the database", w.Code, http.StatusServiceUnavailable)
}

func TestMetricsAreByKind(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{})
	s, _ := openProducts(t)
	i := start(t, s, env.Redis)
	i.cents(42)
	_, page := i.do(http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`cacheguard_requests_total{cache="product",result="loaded"} 1`,
		`cacheguard_requests_total{cache="search",result="loaded"} 0`,
	} {
		expect.Equal(t, want, strings.Contains(page, want), true)
	}
}

func TestAStopLetsRequestsEndThatHaveBegun(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-release
	})
	ctx, stop := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan error, 1)
	go func() { ended <- serve(ctx, listener, handler) }() // owner: the test; stop: ctx; joined below
	go func() {                                            // owner: the test; stop: release; joined below
		_, _, err := request{method: "GET"}.do(t.Context(), "http://"+listener.Addr().String())
		answered <- err
	}()
	<-begun
	stop()
	for { // until the listener is closed, which Shutdown does first
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			break
		}
		_ = conn.Close() // it was only to see whether it can be had
	}
	close(release)
	expect.Equal(t, "the answer", <-answered, nil)
	expect.Equal(t, "the end", <-ended, nil)
	http.DefaultClient.CloseIdleConnections()
}

func TestTheProgramShowsEachRequestAndEnds(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	var out, problems strings.Builder
	code := new(settings).program().Execute(t.Context(), []string{"-short", "-query", "0"}, &out, &problems)
	expect.Equal(t, "exit code: "+problems.String(), code, 0)
	for _, want := range []string{
		"PUT /products/42/price?cents=1: 204", "GET /products/4242: 404", `"category":"boots"`, "DELETE /products/42: 404", `"status":"ok"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in the output:\n%s", want, out.String())
		}
	}
}

// interrupting is Ctrl-C at the moment when the program says that this ends it.
type interrupting struct {
	strings.Builder
	interrupt func()
}

func (i *interrupting) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "Ctrl-C") {
		i.interrupt()
	}
	return i.Builder.Write(text)
}

func TestTheProgramSaysWhatToTryAndEndsWithCtrlC(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	ctx, interrupt := context.WithCancel(t.Context())
	out, problems := interrupting{interrupt: interrupt}, strings.Builder{}
	code := new(settings).program().Execute(ctx, []string{"-port", "0"}, &out, &problems)
	expect.Equal(t, "exit code: "+problems.String(), code, program.Interrupted)
	for _, want := range []string{"/products/42'", "-X PUT 'http://127.0.0.1:", "/metrics"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in the output:\n%s", want, out.String())
		}
	}
}

func TestABadFlagIsNamed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-port 65536", "-port -1", "-query 2s", "-query -1s"} {
		var problems strings.Builder
		new(settings).program().Execute(t.Context(), strings.Fields(args), &problems, &problems)
		flag := strings.Fields(args)[0]
		expect.Equal(t, args+": "+problems.String(), strings.HasPrefix(problems.String(), "catalogue: "+flag+": "), true)
	}
}
