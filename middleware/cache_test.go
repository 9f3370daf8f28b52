package middleware

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAPageIsMadeOnceForAllInstances(t *testing.T) {
	t.Parallel()
	const instances, requests = 8, 128
	p := newPage(says("hello", fresh)).held()
	f := newFleet(t, instances, Config{}, p)
	var replies []<-chan answer
	for i := range instances {
		for range requests {
			replies = append(replies, f.async(i, "/hot"))
		}
	}
	<-p.begun
	f.waits("/hot", instances-1)
	close(p.hold)
	for _, c := range replies {
		if a := <-c; a.body != "hello" || a.StatusCode != http.StatusOK {
			t.Fatalf("got %q", a.body)
		}
	}
	expect.Equal(t, "calls of the handler", p.calls.Load(), 1)
	expect.Equal(t, "loaded", f.count(Loaded), 1)
	if a := f.get("/hot"); !strings.HasPrefix(a.cacheStatus(), "cacheguard; hit; ttl=") || a.Header.Get("Age") == "" {
		t.Errorf("a hit says %q, Age %q", a.cacheStatus(), a.Header.Get("Age"))
	}
}

func TestAClientThatLeavesDoesNotTakeTheOthersResponseAway(t *testing.T) {
	t.Parallel()
	p := newPage(says("hello", fresh)).held()
	f := newFleet(t, 1, Config{}, p)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.urls[0]+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	left := make(chan error, 1)
	go func() { // owner: the test; stop: leave; joined by receiving
		_, err := f.client.Do(r) //nolint:bodyclose // it fails
		left <- err
	}()
	<-p.begun
	stays := f.async(0, "/")
	f.joins(1)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(p.hold)
	expect.Equal(t, "body", (<-stays).body, "hello")
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

// logs has what a Logger writes.
type logs chan string

func (l logs) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestAPanicReachesNetHTTPForOneAndTheOthersGet500(t *testing.T) {
	t.Parallel()
	recovered := make(chan any, 10)
	p := newPage(func(http.ResponseWriter, *http.Request) { panic("ouch") }).held()
	var f *fleet
	logged := make(logs, 10)
	outer := func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				recovered <- v
				w.WriteHeader(http.StatusTeapot)
			}
		}()
		f.caches[0].Handler(p).ServeHTTP(w, r)
	}
	f = newFleet(t, 1, Config{Logger: slog.New(slog.NewTextHandler(logged, nil))}, p)
	f.front(http.HandlerFunc(outer))
	first := f.async(0, "/")
	<-p.begun
	second := f.async(0, "/")
	f.joins(1)
	close(p.hold)
	expect.Equal(t, "first", (<-first).StatusCode, http.StatusTeapot)
	expect.Equal(t, "second", (<-second).StatusCode, http.StatusInternalServerError)
	if p, ok := (<-recovered).(*PanicError); !ok || p.Value != "ouch" {
		t.Errorf("recovered %v", p)
	}
	expect.Equal(t, "further panics", len(recovered), 0)
	expect.Says(t, <-logged, "handler panicked", "path=/ ", "cache_test.go", "cache=test-", "instance=")
	began := time.Now()
	for range 5 {
		f.get("/")
	}
	if most := int(time.Since(began) / (10 * time.Second)); len(logged) > most { // the page panics with each request
		t.Errorf("%d further lines of the log, want at most %d", len(logged), most)
	}
	p.serve, p.hold = says("well"), nil
	expect.Equal(t, "afterwards", f.get("/").body, "well")
}

// A response that cannot be stored reaches the first client while it is written, and the waiting requests call the handler at once.
func TestAnUncacheableResponseHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "private")
		_, _ = io.WriteString(w, "begin ")
		<-release
		_, _ = io.WriteString(w, "end")
	}).held()
	f := newFleet(t, 2, Config{}, p)
	var replies []<-chan answer
	replies = append(replies, f.async(0, "/"))
	<-p.begun
	replies = append(replies, f.async(1, "/"))
	f.waits("/", 1)
	close(p.hold)
	<-p.begun // the second runs although the first has not ended
	close(release)
	for _, c := range replies {
		expect.Equal(t, "body", (<-c).body, "begin end")
	}
	a := f.get("/")
	expect.Equal(t, "calls", p.calls.Load(), 3)
	expect.Equal(t, "passed", f.count(Passed), 3)
	if !strings.Contains(a.cacheStatus(), "fwd=uri-miss") {
		t.Errorf("Cache-Status: %q", a.cacheStatus())
	}
}

func TestALargeBodyStreamsThroughUnstored(t *testing.T) {
	t.Parallel()
	chunk := strings.Repeat("x", 1000)
	read := make(chan struct{})
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for range 100 {
			_, _ = io.WriteString(w, chunk)
		}
		<-read
	})
	f := newFleet(t, 1, Config{MaxBody: 10_000}, p)
	res, err := f.client.Get(f.urls[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 50_000)); err != nil {
		t.Fatal(err) // it comes before the handler returns
	}
	close(read)
	rest, err := io.ReadAll(res.Body)
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "rest", len(rest), 50_000)
	expect.Equal(t, "passed", f.count(Passed), 1)
}

func TestVariantsAreKeptSideBySide(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		says("in "+r.Header.Get("Accept-Language"), fresh, "Vary: Accept-Language")(w, r)
	})
	f := newFleet(t, 2, Config{}, p)
	for i := range 6 {
		for _, lang := range []string{"de", "en", "fr"} {
			expect.Equal(t, "body", f.do(i%2, "GET", "/", "Accept-Language: "+lang).body, "in "+lang)
		}
	}
	expect.Equal(t, "calls", p.calls.Load(), 3)
	expect.Equal(t, "Invalidate", f.invalidate("/"), nil)
	for _, lang := range []string{"en", "de"} {
		expect.Equal(t, "body", f.get("/", "Accept-Language: "+lang).body, "in "+lang)
	}
	expect.Equal(t, "calls after Invalidate", p.calls.Load(), 5)
}

func TestRedisDownMeansTheHandlerIsCalledOnceForAll(t *testing.T) {
	t.Parallel()
	p := newPage(says("hello", fresh)).held()
	server := redistest.Start(t)
	f := newFleetOn(t, server, 1, Config{Prefixes: []string{"/"}}, cacheguard.Config{}, p)
	server.Kill()
	var replies []<-chan answer
	for range 10 {
		replies = append(replies, f.async(0, "/"))
	}
	<-p.begun
	f.joins(9)
	close(p.hold)
	for _, c := range replies {
		expect.Equal(t, "body", (<-c).body, "hello")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
	expect.Equal(t, "bypassed", f.count(Bypassed), 10)
}

func TestAHandlerThatRequestsItsOwnPageIsCalledAgain(t *testing.T) {
	t.Parallel()
	var f *fleet
	var inner http.Handler
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Depth") != "" {
			says("inner")(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Depth", "1")
		inner.ServeHTTP(w, r)
	})
	f = newFleet(t, 1, Config{}, p)
	inner = f.caches[0].Handler(p)
	expect.Equal(t, "body", f.get("/").body, "inner")
}

func TestHeadIsAnsweredFromGet(t *testing.T) {
	t.Parallel()
	p := newPage(says("hello", fresh))
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	a := f.do(0, http.MethodHead, "/")
	expect.Equal(t, "Content-Length", a.Header.Get("Content-Length"), strconv.Itoa(len("hello")))
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestNewNamesEveryBadField(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{
		Name: "a b", DefaultTTL: -2, Heuristic: 2, KeepFor: 5, PassFor: -7, MaxBody: -1, SliceBytes: -1, Target: "é", Prefixes: []string{"x"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"guard", "Name", "DefaultTTL", "Heuristic", "KeepFor", "PassFor", "MaxBody", "SliceBytes", "Target", "Prefixes"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q does not name %s", err, field)
		}
	}
}

func TestSliceBytesMayNotExceedMaxBody(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{SliceBytes: defaultMaxBody + 1}, {MaxBody: 10, SliceBytes: 11}} {
		if err := cfg.check(); err == nil || !strings.Contains(err.Error(), "SliceBytes") {
			t.Errorf("%d of %d: %v", cfg.SliceBytes, cfg.MaxBody, err)
		}
	}
	if err := (&Config{SliceBytes: defaultMaxBody}).check(); err != nil {
		t.Error(err)
	}
}
