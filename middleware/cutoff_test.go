package middleware

import (
	"io"
	"net/http"
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
				_, _, err := cacheguard.Fetch(t.Context(), f.guards[0], pageKey(anybody, "http://"+host+"/"), cacheguard.Source[[]byte]{})
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
