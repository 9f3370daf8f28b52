package middleware

import (
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A film changes, and is invalidated each time, while many read parts of it on two instances: no answer has parts of two films, and none
// that begins after an invalidation is of a film of before.
func TestNoAnswerMixesTwoPages(t *testing.T) {
	t.Parallel()
	p := newFilm()
	p.change("e10")
	f := newFleet(t, 2, inSlices, p)
	var valid atomic.Int64 // the number of the oldest film that may be served
	valid.Store(10)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		readers.Go(func() { // owner: the test; stop: stop; joined by readers.Wait
			for {
				select {
				case <-stop:
					return
				default:
				}
				from := mathrand.IntN(len(filmed("e10")))
				to := min(from+mathrand.IntN(400), len(filmed("e10"))-1)
				oldest := valid.Load()
				a, err := f.try(i%2, http.MethodGet, "/", fmt.Sprintf("Range: bytes=%d-%d", from, to))
				if err != nil {
					continue // cut off
				}
				edit := strings.Trim(a.Header.Get("Etag"), `"`)
				if n, err := strconv.ParseInt(edit[1:], 10, 64); err != nil || n < oldest {
					t.Errorf("%s, although %d is invalid", edit, oldest-1)
				}
				if a.body != filmed(edit)[from:to+1] {
					t.Errorf("bytes %d to %d of %s: %d %q", from, to, edit, a.StatusCode, a.body)
				}
			}
		})
	}
	for n := int64(11); n < 60; n++ {
		p.change(fmt.Sprint("e", n))
		if err := f.invalidate("/"); err != nil {
			t.Error(err)
		}
		valid.Store(n)
	}
	close(stop)
	readers.Wait()
}

// ReverseProxy panics when its client's context ends while it copies a body, as that of a page does which is too large.
func TestSlicesOfAnOriginBehindAProxy(t *testing.T) {
	t.Parallel()
	p := newFilm()
	origin := httptest.NewServer(p)
	t.Cleanup(origin.Close)
	at, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, 2, inSlices, httputil.NewSingleHostReverseProxy(at))
	for range 20 {
		path := "/" + strconv.Itoa(mathrand.Int())
		var answers []<-chan answer
		for i := range 20 {
			answers = append(answers, f.async(i%2, path, "Range: bytes=150-249"))
		}
		for _, c := range answers {
			if a := <-c; a.body != filmed("a")[150:250] {
				t.Fatal(a.Response, a.body)
			}
		}
		f.stored()
		equal(t, "asked for twenty", p.asked(), " 100-199 200-299")
		equal(t, "body", f.get(path).body, filmed("a"))
		equal(t, "asked", p.asked(), "0-99 300-399 400-499 500-599 600-699 700-799 800-899 900-999")
		equal(t, "failed", f.count(Failed), 0)
	}
}
