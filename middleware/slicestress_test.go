package middleware

import (
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// A film changes and is invalidated many times while clients read parts of it on two instances. No answer has parts of two films, and no
// request gets a film from before an invalidation that it began after.
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

// ReverseProxy panics when its context ends while it copies a body, which happens when a page is too large.
func TestSlicesOfAnOriginBehindAProxy(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 2, inSlices, proxy(t, p))
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
		expect.Equal(t, "asked for twenty", p.asked(), " 100-199 200-299")
		expect.Equal(t, "body", f.get(path).body, filmed("a"))
		expect.Equal(t, "asked", p.asked(), "0-99 300-399 400-499 500-599 600-699 700-799 800-899 900-999")
		expect.Equal(t, "failed", f.count(Failed), 0)
	}
}
