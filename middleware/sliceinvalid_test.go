package middleware

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Every invalidation of a page ends its slices, on every instance, although nobody looks for them.
func TestInvalidatingAPageInvalidatesItsSlices(t *testing.T) {
	t.Parallel()
	for name, invalidate := range ways() {
		for _, variant := range []string{"", "a variant"} {
			t.Run(name+" "+variant, func(t *testing.T) {
				t.Parallel()
				p := newFilm("Cache-Tag: t1", "Vary: X-A")
				f := newFleet(t, 2, inSlices, p)
				if variant != "" {
					f.warm("/a/1", "X-A: of another", "Range: bytes=0-1")
				}
				want := func(edit string) {
					t.Helper()
					for i := range 2 {
						expect.Equal(t, "body", f.do(i, http.MethodGet, "/a/1", "X-A: 1", "Range: bytes=50-149").body, filmed(edit)[50:150])
						f.stored()
					}
				}
				want("a")
				p.change("b")
				want("a")
				invalidate(f)
				want("b")
			})
		}
	}
}

// An unchanged ETag does not justify serving slices that were made before an invalidation.
func TestAnInvalidationEndsSlicesEvenIfTheETagStaysTheSame(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, inSlices, p)
	f.warm("/", "Range: bytes=0-149")
	p.asked()
	if err := f.invalidate("/"); err != nil {
		t.Fatal(err)
	}
	f.get("/", "Range: bytes=0-149")
	expect.Equal(t, "asked", p.asked(), " 0-99 100-199")
}

// An invalidation comes between two slices of one answer. If the page is still the same, the answer goes on, but no request after the
// invalidation gets the slices that it stored before.
func TestAnInvalidationBetweenTwoSlicesEndsTheEarlierOnes(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{"a", "b"} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			p := newFilm()
			var f *fleet
			var once atomic.Bool
			f = newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "bytes=500-599" && once.CompareAndSwap(false, true) {
					p.change(edit)
					if err := f.invalidate("/"); err != nil {
						t.Error(err)
					}
				}
				p.ServeHTTP(w, r)
			}))
			f.flushing()
			f.learn("/")
			a, err := f.try(0, http.MethodGet, "/")
			switch edit {
			case "a":
				expect.Equal(t, "body", a.body, filmed("a"))
			default:
				if !errors.Is(err, io.ErrUnexpectedEOF) || a.body != filmed("a")[:500] {
					t.Errorf("%v %q", err, a.body)
				}
			}
			f.stored()
			p.asked()
			expect.Equal(t, "body", f.get("/", "Range: bytes=450-649").body, filmed(edit)[450:650])
			if asked := p.asked(); !strings.HasSuffix(asked, "400-499 500-599 600-699") {
				t.Errorf("asked %q: slices of before the invalidation were used", asked)
			}
		})
	}
}

// A slice that is being made during an invalidation belongs to the earlier page.
func TestASliceOvertakenByAnInvalidationIsNotServedAfterwards(t *testing.T) {
	t.Parallel()
	p := newFilm()
	began, hold := make(chan struct{}, 1), make(chan struct{})
	var once atomic.Bool
	f := newFleet(t, 2, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r) // the bytes of now
		if r.Header.Get("Range") == "bytes=0-99" && once.CompareAndSwap(false, true) {
			began <- struct{}{}
			<-hold
		}
	}))
	f.learn("/")
	early := f.async(0, "/", "Range: bytes=0-9")
	<-began
	p.change("b")
	if err := f.invalidate("/"); err != nil {
		t.Fatal(err)
	}
	late := f.async(1, "/", "Range: bytes=0-9")
	redistest.Await(t, "the page is loaded anew", func() bool {
		rec := f.marked("/")
		return rec != nil && rec.Get("Etag") == `"b"`
	})
	close(hold)
	expect.Equal(t, "early", (<-early).body, filmed("a")[:10])
	expect.Equal(t, "late", (<-late).body, filmed("b")[:10])
	f.stored()
	expect.Equal(t, "later", f.get("/", "Range: bytes=0-9").body, filmed("b")[:10])
}
