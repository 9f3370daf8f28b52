package middleware

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/redistest"
)

// What invalidates a page reaches its slices, on every instance, although nobody looks for them.
func TestInvalidatingAPageInvalidatesItsSlices(t *testing.T) {
	t.Parallel()
	for name, invalidate := range map[string]func(*fleet) error{
		"Invalidate":       func(f *fleet) error { return f.invalidate("/films/a") },
		"InvalidateTags":   func(f *fleet) error { return f.caches[0].InvalidateTags(f.t.Context(), "films") },
		"InvalidatePrefix": func(f *fleet) error { return f.caches[0].InvalidatePrefix(f.t.Context(), "/films/") },
		"an unsafe method": func(f *fleet) error {
			_, err := f.try(0, http.MethodPost, "/films/a")
			return err
		},
	} {
		for _, variant := range []string{"", "a variant"} {
			t.Run(name+" "+variant, func(t *testing.T) {
				t.Parallel()
				p := newFilm("Cache-Tag: films", "Vary: X-A")
				f := newFleet(t, 2, inSlices, p)
				if variant != "" {
					f.get("/films/a", "X-A: of another", "Range: bytes=0-1")
					f.stored()
				}
				want := func(edit string) {
					t.Helper()
					for i := range 2 {
						equal(t, "body", f.do(i, http.MethodGet, "/films/a", "X-A: 1", "Range: bytes=50-149").body, filmed(edit)[50:150])
						f.stored()
					}
				}
				want("a")
				p.change("b")
				want("a")
				if err := invalidate(f); err != nil {
					t.Fatal(err)
				}
				want("b")
			})
		}
	}
}

// The same ETag is no reason to serve what was made before an invalidation.
func TestSlicesAreMadeAnewAfterAnInvalidationAlthoughTheETagIsTheSame(t *testing.T) {
	t.Parallel()
	p := newFilm()
	f := newFleet(t, 1, inSlices, p)
	f.get("/", "Range: bytes=0-149")
	f.stored()
	p.asked()
	if err := f.invalidate("/"); err != nil {
		t.Fatal(err)
	}
	f.get("/", "Range: bytes=0-149")
	equal(t, "asked", p.asked(), " 0-99 100-199")
}

// An invalidation comes between two slices of one answer, which began before it. If the page is the same, the answer goes on; nothing
// of what it stores is served to those who ask after the invalidation.
func TestAnInvalidationBetweenTwoSlicesOfAnAnswer(t *testing.T) {
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
			f.do(0, http.MethodHead, "/")
			f.stored()
			a, err := f.try(0, http.MethodGet, "/")
			switch edit {
			case "a":
				equal(t, "body", a.body, filmed("a"))
			default:
				if !errors.Is(err, io.ErrUnexpectedEOF) || a.body != filmed("a")[:500] {
					t.Errorf("%v %q", err, a.body)
				}
			}
			f.stored()
			p.asked()
			equal(t, "body", f.get("/", "Range: bytes=450-649").body, filmed(edit)[450:650])
			if asked := p.asked(); !strings.HasSuffix(asked, "400-499 500-599 600-699") {
				t.Errorf("asked %q: slices of before the invalidation were used", asked)
			}
		})
	}
}

// A slice that was being made during an invalidation is of what was before.
func TestASliceThatAnInvalidationOvertookIsNotServedAfterIt(t *testing.T) {
	t.Parallel()
	p := newFilm()
	began, hold := make(chan struct{}, 1), make(chan struct{})
	var once atomic.Bool
	f := newFleet(t, 2, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r) // the bytes are those of now
		if r.Header.Get("Range") == "bytes=0-99" && once.CompareAndSwap(false, true) {
			began <- struct{}{}
			<-hold
		}
	}))
	f.do(0, http.MethodHead, "/")
	f.stored()
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
	equal(t, "early", (<-early).body, filmed("a")[:10])
	equal(t, "late", (<-late).body, filmed("b")[:10])
	f.stored()
	equal(t, "later", f.get("/", "Range: bytes=0-9").body, filmed("b")[:10])
}

// newAgedFilm is a film in front of n instances that is stale as long as aged is true.
func newAgedFilm(t *testing.T, n int) (f *fleet, p *film, aged *atomic.Bool) {
	t.Helper()
	p, aged = newFilm(), new(atomic.Bool)
	aged.Store(true)
	return newFleet(t, n, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if aged.Load() {
			w.Header().Set("Age", "70")
		}
		p.ServeHTTP(w, r)
	})), p, aged
}

// A page that is stale is validated as a whole: its slices need not be asked for.
func TestAPageIsValidatedTogetherWithItsSlices(t *testing.T) {
	t.Parallel()
	f, p, aged := newAgedFilm(t, 2)
	f.get("/", "Range: bytes=0-149")
	f.stored()
	equal(t, "asked", p.asked(), " 0-99 100-199")
	aged.Store(false)
	a := f.do(1, http.MethodGet, "/", "Range: bytes=50-149")
	equal(t, "body", a.body, filmed("a")[50:150])
	equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=stale; fwd-status=304; stored")
	equal(t, "Age", a.Header.Get("Age"), "0")
	equal(t, "asked", p.asked(), "") // the whole, with a condition
	f.stored()
	a = f.get("/", "Range: bytes=50-149", "Cache-Control: max-age=30")
	equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; hit")
	equal(t, "asked", p.asked(), "")
	a = f.get("/", "Range: bytes=50-149", "Cache-Control: no-cache")
	equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=request; fwd-status=304; stored")
	equal(t, "asked", p.asked(), "")
}

// A slice that a later page vouches for is kept for as long as that is, without the handler.
func TestASliceLivesAsLongAsThePageThatVouchesForIt(t *testing.T) {
	t.Parallel()
	f, p, aged := newAgedFilm(t, 1)
	f.get("/", "Range: bytes=0-9")
	f.stored()
	aged.Store(false)
	redistest.Await(t, "the slice is kept for longer", func() bool {
		equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
		return f.sliceTTL() > defaultKeepFor
	})
	equal(t, "asked", p.asked(), " 0-99 ")
}

// A page that may be stale has slices that may be: while the handler fails, it is served if they are there.
func TestAPageInSlicesStandsInForAHandlerThatFails(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	p := newFilm("Cache-Control: max-age=60, stale-if-error=600", "Age: 70")
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.ServeHTTP(w, r)
	}))
	f.get("/", "Range: bytes=0-9")
	f.stored()
	fails.Store(true)
	a := f.get("/", "Range: bytes=5-9")
	equal(t, "status", a.StatusCode, http.StatusPartialContent)
	equal(t, "body", a.body, filmed("a")[5:10])
	equal(t, "stale", f.count(Stale), 1)
	equal(t, "a slice that there is not", f.get("/", "Range: bytes=200-201").StatusCode, http.StatusServiceUnavailable)
}

// sliceTTL is how long the only slice is kept.
func (f *fleet) sliceTTL() time.Duration {
	f.t.Helper()
	rdb := shared.Client(f.t)
	keys, err := rdb.Keys(f.t.Context(), f.prefix+"*slice:*").Result()
	if err != nil || len(keys) != 1 {
		return 0 // a load is under way
	}
	ttl, err := rdb.PTTL(f.t.Context(), keys[0]).Result()
	if err != nil {
		f.t.Fatal(err)
	}
	return ttl
}

// A 304 with another validator would have the slices known by one that they do not have.
func TestASlicedPageIsNotMadeGoodByA304WithAnotherValidator(t *testing.T) {
	t.Parallel()
	var aged atomic.Bool
	aged.Store(true)
	p := newFilm()
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Etag", `W/"a"`)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if aged.Load() {
			w.Header().Set("Age", "70")
		}
		p.ServeHTTP(w, r)
	}))
	f.get("/", "Range: bytes=0-9")
	f.stored()
	aged.Store(false)
	p.asked()
	equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
	equal(t, "asked", p.asked(), "") // the whole, without a condition
	f.stored()
	equal(t, "ETag", f.marked("/").Get("Etag"), `"a"`)
}

func TestASliceIsAskedForOnTheConditionThatThePageIsTheSame(t *testing.T) {
	t.Parallel()
	p := newFilm()
	asked := make(chan http.Header, 10)
	f := newFleet(t, 1, inSlices, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Clone()
		p.ServeHTTP(w, r)
	}))
	f.get("/", "Range: bytes=210-219", `If-None-Match: "b"`, "X-A: 1")
	<-asked // the whole
	h := <-asked
	for name, want := range map[string]string{"Range": "bytes=200-299", "If-Range": `"a"`, "If-None-Match": "", "X-A": "1"} {
		equal(t, name, h.Get(name), want)
	}
}
