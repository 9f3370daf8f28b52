package middleware

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redistest"
)

// What goes to its client while it is written outlives the load: the others do not wait for it any more.
func TestAResponseThatStreamsKeepsItsContext(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w http.ResponseWriter){
		"private": func(w http.ResponseWriter) { w.Header().Set("Cache-Control", "private") },
		"large": func(w http.ResponseWriter) {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, ended := make(chan struct{}), make(chan error, 1)
			f := newFleet(t, 1, Config{MaxBody: 50}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				_, _ = io.WriteString(w, "begin ")
				select {
				case <-release:
				case <-r.Context().Done():
				}
				ended <- r.Context().Err()
				_, _ = io.WriteString(w, "end")
			}))
			reply := f.async(0, "/")
			redistest.Await(t, "the load is over", func() bool {
				_, _, err := cacheguard.Fetch(t.Context(), f.guards[0], f.pageKey("/"), cacheguard.Source[[]byte]{})
				return err == nil
			})
			close(release)
			a := <-reply
			equal(t, "context", <-ended, nil)
			equal(t, "the end", strings.HasSuffix(a.body, "begin end"), true)
		})
	}
}

// Many handlers stop writing and return when their context ends: what they wrote is no page.
func TestAResponseThatWasCutOffIsNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70"))
	f := newFleetOn(t, shared, 1, Config{}, cacheguard.Config{LoadTimeout: 50 * time.Millisecond}, p)
	f.get("/")
	<-p.begun
	ended := make(chan struct{})
	cut := true
	p.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "half")
		if cut {
			cut = false
			<-r.Context().Done()
			defer close(ended)
			return
		}
		_, _ = io.WriteString(w, " and half")
	}
	equal(t, "stale", f.get("/").body, "page")
	<-p.begun
	<-ended
	redistest.Await(t, "the page is whole", func() bool {
		body := f.get("/").body
		if body == "half" {
			t.Fatal("half a page was stored")
		}
		return body == "half and half"
	})
}

// Over the network nobody can tell that it is the handler itself that waits for the handler.
func TestAHandlerThatAsksForItsOwnURLIsHeldUpForLoadTimeoutAtMost(t *testing.T) {
	t.Parallel()
	var f *fleet
	handler := func(w http.ResponseWriter, r *http.Request) {
		own, err := http.NewRequestWithContext(r.Context(), http.MethodGet, f.urls[0]+"/", nil)
		if err != nil {
			t.Error(err)
			return
		}
		own.Host = host
		res, err := f.client.Do(own)
		if err != nil {
			http.Error(w, "timeout", http.StatusGatewayTimeout)
			return
		}
		_ = res.Body.Close()
	}
	f = newFleetOn(t, shared, 1, Config{}, cacheguard.Config{LoadTimeout: 50 * time.Millisecond}, http.HandlerFunc(handler))
	equal(t, "status", f.get("/").StatusCode, http.StatusGatewayTimeout)
}

// readerFrom counts what net/http could send without copying it.
type readerFrom struct {
	http.ResponseWriter
	n int64
}

func (w *readerFrom) ReadFrom(src io.Reader) (n int64, err error) {
	n, err = io.Copy(w.ResponseWriter, src)
	w.n += n
	return n, err
}

func TestFilesThatPassAreStillSentWithoutCopying(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, 1, Config{KeepFor: -1}, http.NotFoundHandler())
	w := &readerFrom{ResponseWriter: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Range", "bytes=2-5")
	f.caches[0].Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, name) })).ServeHTTP(w, r)
	equal(t, "bytes", w.n, 4)
	equal(t, "passed", f.count(Passed), 1)
}

// The origin says no length, so nothing but the end of the connection tells that the body is not whole.
func TestAnOriginThatDiesHalfwayLeavesNoHalfPage(t *testing.T) {
	t.Parallel()
	calls := 0
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "half")
		if calls == 1 {
			_ = http.NewResponseController(w).Flush() // it is sent
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(origin.Close)
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	f := newFleet(t, 1, Config{}, proxy)
	if _, err := f.try(0, "GET", "/"); err == nil {
		t.Error("the client was not told")
	}
	f.get("/")
	equal(t, "calls of the origin", calls, 2)
}
