package middleware

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// call is one call of the origin.
type call struct {
	cause   ask
	client  string // that caused it
	ended   time.Time
	version int
	failed  bool
}

// scenario is some requests for one URL, in steps of up to four at once. Between the steps the page may change, or its origin fail.
type scenario struct {
	t       *testing.T
	said    said
	handler http.Handler
	path    string

	mu      sync.Mutex
	calls   []call
	version int
	failing bool
	asks    map[string]ask       // by client
	left    map[string]time.Time // when a client had its answer
}

const pageBytes = 100

// body is the page in a version.
func body(version int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%04d,abcd,", version), pageBytes/10)
}

// ServeHTTP is the origin.
func (s *scenario) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	client := r.Header.Get("X-Client")
	id, version, failing := len(s.calls), s.version, s.failing
	s.calls = append(s.calls, call{cause: s.asks[client], client: client, version: version, failed: failing})
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls[id].ended = time.Now()
	}()
	for name, value := range s.said.header(version) {
		if value != "" && !(failing && (name == "Etag" || name == "Last-Modified")) { // those are the page's
			w.Header().Set(name, value)
		}
	}
	w.Header().Set("X-Call", strconv.Itoa(id))
	w.Header().Set("X-Version", strconv.Itoa(version))
	if failing {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body(version)))
}

// send sends a request, and judges what comes of it.
func (s *scenario) send(q ask) {
	client := rand.Text()
	s.mu.Lock()
	s.asks[client] = q
	s.mu.Unlock()
	r := httptest.NewRequestWithContext(context.WithoutCancel(s.t.Context()), http.MethodGet, s.path, nil)
	set := func(name, value string) {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	set("X-Client", client)
	set("X-A", q.x)
	set("Range", q.rng)
	set("If-None-Match", q.ifNone)
	set("Cache-Control", q.control)
	if q.onlyIfCached {
		r.Header.Add("Cache-Control", "only-if-cached")
	}
	if q.authorized {
		set("Authorization", "me")
	}
	w, began := httptest.NewRecorder(), time.Now()
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // an answer that was cut off
			panic(p)
		}
	}()
	s.handler.ServeHTTP(w, r)
	s.mu.Lock()
	s.left[client] = time.Now()
	s.mu.Unlock()
	s.judge(q, client, began, w.Result(), w.Body.Bytes())
}

func (s *scenario) judge(q ask, client string, began time.Time, a *http.Response, got []byte) {
	fail := func(format string, args ...any) {
		s.t.Errorf("%s\n%+v\nasked %+v, answered %d %v", fmt.Sprintf(format, args...), s.said, q, a.StatusCode, a.Header)
	}
	id, err := strconv.Atoi(a.Header.Get("X-Call"))
	if err != nil {
		if a.StatusCode != http.StatusGatewayTimeout || !q.onlyIfCached {
			fail("an answer of nobody's")
		}
		return
	}
	s.mu.Lock()
	c, failing := s.calls[id], s.failing
	before := !c.ended.IsZero() && c.ended.Before(began) && !s.left[c.client].IsZero() && s.left[c.client].Before(began)
	s.mu.Unlock()
	if own := c.client == client; !own {
		why := s.said.mayShare(c.cause, q)
		if why == "" && before { // what is made meanwhile may be shared
			why = s.said.mayReuse(q, s.said.left(began), failing)
		}
		if c.failed {
			why = "a failure without fields is for the client that caused it"
			if s.said.left(began) > 0 || s.said.swr || s.said.etag != "" || s.said.modified { // it says that it may be stored
				why = ""
			}
		}
		if why != "" {
			fail("against %s: call %d, %+v", why, id, c)
		}
	} else if q.onlyIfCached {
		fail("the origin was asked")
	}
	if !c.failed {
		s.judgeBody(fail, q, a, body(c.version), got)
	}
}

// judgeBody compares what was sent of the page with what net/http would have sent (RFC 9110 sections 13.2 and 14).
func (s *scenario) judgeBody(fail func(string, ...any), q ask, a *http.Response, page, got []byte) {
	r := &http.Request{Method: http.MethodGet, Header: make(http.Header)}
	if q.rng != "" {
		r.Header.Set("Range", q.rng)
	}
	if q.ifNone != "" {
		r.Header.Set("If-None-Match", q.ifNone)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/plain")
	if etag := a.Header.Get("Etag"); etag != "" {
		w.Header().Set("Etag", etag)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
	several := strings.Contains(q.rng, ",") && w.Code == http.StatusPartialContent // the boundary is random
	whole := a.StatusCode == http.StatusOK && bytes.Equal(got, page)               // a cache may ignore a Range
	if !several && !whole && (a.StatusCode != w.Code || !bytes.Equal(got, w.Body.Bytes()) && w.Code != http.StatusRequestedRangeNotSatisfiable) {
		fail("got %q, want %d %q", got, w.Code, w.Body)
	}
}

// play plays a scenario.
func play(t *testing.T, caches []*Cache, bits uint64, steps []byte) *scenario {
	t.Helper()
	choose := chooser(bits)
	cache := caches[choose.of(len(caches))]
	s := &scenario{t: t, said: newSaid(uint64(choose)), path: "/" + rand.Text(), version: 1, asks: make(map[string]ask), left: make(map[string]time.Time)}
	s.handler = cache.Handler(s)
	for len(steps) >= 8 {
		var n chooser
		for _, b := range steps[:8] {
			n = n<<8 | chooser(b)
		}
		steps = steps[8:]
		s.mu.Lock()
		if s.failing = n.of(6) == 1; n.of(4) == 1 {
			s.version++
		}
		s.mu.Unlock()
		var clients sync.WaitGroup
		for range 1 + n.of(4) {
			q := newAsk(&n)
			clients.Go(func() { s.send(q) })
			if n == 0 {
				break
			}
		}
		clients.Wait()
	}
	return s
}

func judged(t testing.TB) []*Cache {
	return []*Cache{newCache(t, Config{}), newCache(t, Config{MaxBody: 40, SliceBytes: 32}), newCache(t, Config{MaxBody: 40})}
}

func FuzzTheJudge(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i)*0x9e3779b97f4a7c15, bytes.Repeat([]byte{byte(i), 7, 1, byte(5 * i)}, 8))
	}
	caches := judged(f)
	f.Fuzz(func(t *testing.T, bits uint64, steps []byte) { play(t, caches, bits, steps[:min(len(steps), 64)]) })
}

// The same with some scenarios in every run, and one that shows that the judge's cache stores at all.
func TestTheJudgeAgrees(t *testing.T) {
	t.Parallel()
	caches := judged(t)
	for range expect.Samples(100, 400) {
		steps := make([]byte, 8*mathrand.IntN(7))
		_, _ = rand.Read(steps)
		play(t, caches, mathrand.Uint64(), steps)
	}
	for i, cache := range caches[:2] {
		s := &scenario{t: t, said: said{maxAge: "60", etag: "s"}, path: "/" + rand.Text(), version: 1, asks: make(map[string]ask), left: make(map[string]time.Time)}
		s.handler = cache.Handler(s)
		for range 3 {
			s.send(ask{rng: "bytes=0-9"})
		}
		if calls := len(s.calls); calls > 1+2*i {
			t.Errorf("%d calls", calls)
		}
	}
	if left := (&said{maxAge: "60"}).left(time.Now()); left != 60 || !math.IsInf((&said{maxAge: "x"}).left(time.Now()), -1) {
		t.Errorf("the judge counts %v seconds", left)
	}
	if left := (&said{flags: []string{"public"}, modified: true}).left(time.Now()); left != 10 {
		t.Errorf("the judge counts %v seconds where no lifetime is stated", left)
	}
}
