package middleware

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A response that streams to its client outlives the load, because no other request waits for it any more.
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
			expect.Equal(t, "context", <-ended, nil)
			expect.Equal(t, "the end", strings.HasSuffix(a.body, "begin end"), true)
		})
	}
}

// Many handlers stop writing and return when their context ends. Their half of a page is not a page.
func TestAResponseThatWasCutOffIsNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70"))
	f := newHurried(t, Config{}, p)
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
	expect.Equal(t, "stale", f.get("/").body, "page")
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

// Over the network, the cache cannot know that the handler waits for itself.
func TestAHandlerThatRequestsItsOwnURLWaitsAtMostLoadTimeout(t *testing.T) {
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
	f = newHurried(t, Config{}, http.HandlerFunc(handler))
	expect.Equal(t, "status", f.get("/").StatusCode, http.StatusGatewayTimeout)
}

// readerFrom counts the bytes that net/http could send without copying them.
type readerFrom struct {
	http.ResponseWriter
	n int64
}

func (w *readerFrom) ReadFrom(src io.Reader) (n int64, err error) {
	n, err = io.Copy(w.ResponseWriter, src)
	w.n += n
	return n, err
}

func TestFilesThatPassThroughAreSentWithoutCopying(t *testing.T) {
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
	expect.Equal(t, "bytes", w.n, 4)
	expect.Equal(t, "passed", f.count(Passed), 1)
}

// The origin states no length, so only the end of the connection shows that the body is incomplete.
func TestAnOriginThatDiesHalfwayLeavesNoHalfPage(t *testing.T) {
	t.Parallel()
	calls := 0
	behind := proxy(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "half")
		if calls == 1 {
			_ = http.NewResponseController(w).Flush() // it is sent
			panic(http.ErrAbortHandler)
		}
	}))
	behind.ErrorLog = log.New(io.Discard, "", 0)
	f := newFleet(t, 1, Config{}, behind)
	if _, err := f.try(0, "GET", "/"); err == nil {
		t.Error("the client did not notice")
	}
	f.get("/")
	expect.Equal(t, "calls of the origin", calls, 2)
}
