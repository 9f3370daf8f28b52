package middleware

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware/internal/record"
)

func TestAnAnswerStartsOverIfThePageHasChanged(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"whole": nil, "range": {"Range: bytes=100-299"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 2, inSlices, p)
			f.learn("/")
			p.change("b")
			from, to := 0, 1000
			if len(lines) > 0 {
				from, to = 100, 300
			}
			for i := range 2 {
				expect.Equal(t, "body", f.do(i, http.MethodGet, "/", lines...).body, filmed("b")[from:to])
				f.stored()
			}
			expect.Equal(t, "what is stored", f.marked("/").Get("Etag"), `"b"`)
		})
	}
}

// An answer that has begun can only be cut off; the next client gets the new page.
func TestAPageThatChangesWhileItIsSentIsCutOff(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*film){"changed": func(p *film) { p.change("b") }, "failing": func(p *film) { p.change("fail") }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "bytes=500-599" {
					spoil(p)
				}
				if p.edition() == "fail" {
					http.Error(w, "failing", http.StatusInternalServerError)
					return
				}
				p.ServeHTTP(w, r)
			}))
			f.flushing()
			f.learn("/")
			a, err := f.try(0, http.MethodGet, "/")
			if !errors.Is(err, io.ErrUnexpectedEOF) || a.body != filmed("a")[:500] {
				t.Errorf("%v %q", err, a.body)
			}
			expect.Equal(t, "failed", f.count(Failed), 1)
			f.stored()
			if name == "changed" {
				expect.Equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("b")[:10])
				return
			}
			expect.Equal(t, "a stored slice", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
		})
	}
}

// A handler that panics for a slice is called again for the request, in its goroutine.
func TestAPanicForASliceReachesTheRequest(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			panic("a slice")
		}
		p.ServeHTTP(w, r)
	}))
	f.do(0, http.MethodHead, "/")
	defer func() { expect.Equal(t, "panic", recover(), any("a slice")) }()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Host = host
	r.Header.Set("Range", "bytes=0-1")
	f.servers[0].Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
}

// When a client leaves, no further slice is made for it, and the handler's context ends if nobody else waits for the slice.
func TestAClientThatLeavesStopsTheSlices(t *testing.T) {
	t.Parallel()
	p := newFilm()
	var ended atomic.Bool
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") == "bytes=300-399" {
			p.begun <- struct{}{}
			<-r.Context().Done()
			ended.Store(true)
			panic(http.ErrAbortHandler)
		}
		p.serve(w, r)
	}))
	f.flushing()
	f.learn("/")
	p.asked()
	res := f.open("/")
	<-p.begun
	expect.Equal(t, "asked", p.asked(), "0-99 100-199 200-299")
	_ = res.Body.Close() // it leaves
	redistest.Await(t, "the handler's context has ended", ended.Load)
	redistest.Await(t, "the request is over", func() bool { return f.count(Failed) == 1 })
	expect.Equal(t, "asked", p.asked(), "")
	f.stored()
	expect.Equal(t, "slices", f.slices(), 3)
}

// flushing makes each write reach the client at once.
func (f *fleet) flushing() {
	h := f.servers[0].Config.Handler
	f.servers[0].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(flusher{w}, r) })
}

type flusher struct{ http.ResponseWriter }

func (w flusher) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(w.ResponseWriter).Flush()
	}
	return n, err
}

// open sends a GET and does not read the answer.
func (f *fleet) open(path string) *http.Response {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.urls[0]+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Host = host
	res, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// The slices were made by another instance, which has them switched on.
func TestAnInstanceWithoutSlicesPassesASlicedPageThrough(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, Config{MaxBody: 200}, p)
	f.keep("/", record.Record{
		Kind: record.Sliced, ID: "a", Parts: "b", Length: 1000, Location: "//" + host + "/", Status: http.StatusOK,
		Terms: record.Terms{Lifetime: 1 << 50, Explicit: true},
	})
	a := f.get("/", "Range: bytes=0-9")
	expect.Equal(t, "body", a.body, filmed("a")[:10])
}

// Nothing has been sent yet, and a request for this client alone would take as long.
func TestASliceThatTakesTooLongIsAnsweredWith504(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleetOn(t, shared, 1, inSlices, cacheguard.Config{LoadTimeout: redistest.Brisk}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") == "bytes=0-99" {
			<-r.Context().Done()
			return
		}
		p.ServeHTTP(w, r)
	}))
	a := f.get("/", "Range: bytes=0-9")
	expect.Equal(t, "status", a.StatusCode, http.StatusGatewayTimeout)
	expect.Equal(t, "Cache-Control", a.Header.Get("Cache-Control"), "no-store")
	expect.Equal(t, "another slice", f.get("/", "Range: bytes=200-201").body, filmed("a")[200:202])
}

func TestTheHandlerAnswersRangesWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	p := newFilm()
	server := redistest.Start(t)
	f := newFleetOn(t, server, 1, inSlices, cacheguard.Config{}, p)
	f.get("/", "Range: bytes=0-9")
	server.Kill()
	a := f.get("/", "Range: bytes=150-349")
	expect.Equal(t, "body", a.body, filmed("a")[150:350])
	expect.Equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=uri-miss; fwd-status=200; detail=redis")
	expect.Equal(t, "the whole", f.get("/").body, filmed("a"))
	expect.Equal(t, "bypassed", f.count(Bypassed), 2)
}
