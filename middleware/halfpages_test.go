package middleware

import (
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"math"
	"net/http"
	"runtime"
	"testing"
	"time"

	chimiddleware "github.com/go-chi/chi/v5/middleware"

	"github.com/cacheguard/go/internal/testing/expect"
)

// half writes the beginning of a page that may be stored.
func half(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "max-age=60")
	_, _ = io.WriteString(w, "half")
}

// failings are handlers that fail when a part of their page is written, and say so.
func failings() map[string]http.Handler {
	page := template.Must(template.New("").Parse("half {{index . 1}}"))
	return map[string]http.Handler{
		"http.Error": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			half(w)
			http.Error(w, "failed", http.StatusInternalServerError)
		}),
		"a template": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			if err := page.Execute(w, nil); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}),
		"a JSON writer": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			half(w)
			if err := json.NewEncoder(w).Encode(math.Inf(1)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}),
		"chi's Recoverer": silent(chimiddleware.Recoverer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			half(w)
			panic("failed")
		}))),
		"chi's Timeout": chimiddleware.Timeout(time.Millisecond)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			half(w)
			<-r.Context().Done()
		})),
		"a gateway": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.WriteHeader(http.StatusOK)
			w.WriteHeader(http.StatusBadGateway)
		}),
	}
}

// silent keeps chi's Recoverer from printing what it recovers.
func silent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, chimiddleware.WithLogEntry(r, noLog{}))
	})
}

type noLog struct{}

func (noLog) Write(int, int, http.Header, time.Duration, any) {}
func (noLog) Panic(any, []byte)                               {}

func TestAPageWhoseHandlerFailsInTheMiddleIsNotStored(t *testing.T) {
	t.Parallel()
	for name, handler := range failings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(handler.ServeHTTP)
			f := newFleet(t, 1, Config{}, p)
			for range 2 {
				a := f.get("/")
				expect.Equal(t, "an error", a.StatusCode >= 500, true)
				expect.Equal(t, "Cache-Status", a.cacheStatus()[len(a.cacheStatus())-len("; detail=incomplete"):], "; detail=incomplete")
			}
			expect.Equal(t, "calls", p.calls.Load(), 2)
			p.serve = says("page", fresh)
			expect.Equal(t, "afterwards", f.get("/").body, "page")
		})
	}
}

func TestAPageWhoseHandlerFailsInTheMiddleDoesNotReplaceAnother(t *testing.T) {
	t.Parallel()
	for name, handler := range failings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(says("good", fresh))
			f := newFleet(t, 1, Config{}, p)
			f.warm("/")
			p.serve = handler.ServeHTTP
			expect.Equal(t, "the client that asks for a new one", f.get("/", "Cache-Control: no-cache").body, "good")
			expect.Equal(t, "the others", f.get("/").body, "good")
		})
	}
}

func TestAStalePageStandsInForOneWhoseHandlerFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	p := newPage(says("stale", "Cache-Control: max-age=60, stale-if-error=600", "Age: 70", `ETag: "a"`))
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	for name, begin := range map[string]func(http.ResponseWriter){
		"half a page":    half,
		"a confirmation": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotModified) },
	} {
		p.serve = func(w http.ResponseWriter, _ *http.Request) {
			begin(w)
			http.Error(w, "failed", http.StatusInternalServerError)
		}
		a := f.get("/")
		expect.Equal(t, name+": body", a.body, "stale")
		expect.Equal(t, name+": reported", a.cacheStatus()[:len("cacheguard; fwd=stale; fwd-status=500")], "cacheguard; fwd=stale; fwd-status=500")
	}
}

// Bytes that were sent to the client cannot be taken back.
func TestALateErrorDoesNotChangeAResponseThatIsSentAlready(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half") // and nothing about its lifetime
		http.Error(w, "failed", http.StatusInternalServerError)
	}))
	a := f.get("/")
	expect.Equal(t, "status", a.StatusCode, http.StatusOK)
	expect.Equal(t, "body", a.body, "halffailed\n")
}

// What a handler refuses when it has begun is no page either.
func TestAPageWhoseHandlerRefusesInTheMiddleIsNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		half(w)
		http.Error(w, "refused", http.StatusConflict)
		w.WriteHeader(http.StatusNotFound) // an error like the first
	})
	f := newFleet(t, 1, Config{}, p)
	expect.Equal(t, "status", f.get("/").StatusCode, http.StatusConflict)
	f.stored()
	p.serve = says("page", fresh)
	expect.Equal(t, "afterwards", f.get("/").body, "page")
}

// However a handler ends that has begun a page, others do not get half of it.
func TestNoOddEndLeavesHalfAPage(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w http.ResponseWriter){
		"a panic":                func(http.ResponseWriter) { panic("failed") },
		"an abort":               func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"the goroutine ends":     func(http.ResponseWriter) { runtime.Goexit() },
		"a flush, then a panic":  func(w http.ResponseWriter) { w.(http.Flusher).Flush(); panic("failed") },
		"a flush, then an error": func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.WriteHeader(http.StatusInternalServerError) },
		"hints, then an error": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusBadGateway)
		},
		"an error that is no status": func(w http.ResponseWriter) { w.WriteHeader(1000) },
		"the largest status":         func(w http.ResponseWriter) { w.WriteHeader(999) },
		"an error, then another success": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.WriteHeader(http.StatusOK)
		},
		"a hijack": func(w http.ResponseWriter) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close() // the client sees it
			}
			w.WriteHeader(http.StatusInternalServerError)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(func(w http.ResponseWriter, _ *http.Request) {
				half(w)
				end(w)
			})
			f := newFleet(t, 1, Config{}, silent(p))
			f.front(silent(chimiddleware.Recoverer(f.caches[0].Handler(p))))
			_, _ = f.try(0, http.MethodGet, "/") // the connection may be cut
			f.stored()
			p.serve = says("page", fresh)
			expect.Equal(t, "afterwards", f.get("/").body, "page")
		})
	}
}

// What a handler writes beyond what it announced is not sent, as without a cache: the page is that without it.
func TestWhatExceedsTheAnnouncedLengthIsNoPartOfThePage(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		half(w)
		for _, more := range []string{"\n", "more"} {
			if _, err := io.WriteString(w, more); !errors.Is(err, http.ErrContentLength) {
				t.Errorf("writing %q: %v", more, err)
			}
		}
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		expect.Equal(t, "body", f.get("/").body, "half")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
	p.serve = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "6")
		half(w)
		_, _ = io.WriteString(w, "three")
		_, _ = io.WriteString(w, "of") // it would fit
	}
	_, err := f.try(0, http.MethodGet, "/gap")
	expect.ErrorIs(t, err, io.ErrUnexpectedEOF)
	f.stored()
	p.serve = says("page", fresh)
	expect.Equal(t, "afterwards", f.get("/gap").body, "page")
}

// A status that is no failure, given too late, is ignored as net/http ignores it.
func TestALateStatusThatIsNoFailureIsIgnored(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		half(w)
		w.WriteHeader(http.StatusAccepted)
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		a := f.get("/")
		expect.Equal(t, "status", a.StatusCode, http.StatusOK)
		expect.Equal(t, "body", a.body, "half")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}
