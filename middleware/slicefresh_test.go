package middleware

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

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

// A stale page is validated as a whole, without asking for its slices.
func TestAPageIsValidatedTogetherWithItsSlices(t *testing.T) {
	t.Parallel()
	f, p, aged := newAgedFilm(t, 2)
	f.warm("/", "Range: bytes=0-149")
	expect.Equal(t, "asked", p.asked(), " 0-99 100-199")
	aged.Store(false)
	a := f.do(1, http.MethodGet, "/", "Range: bytes=50-149")
	expect.Equal(t, "body", a.body, filmed("a")[50:150])
	expect.Equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=stale; fwd-status=304; stored")
	expect.Equal(t, "Age", a.Header.Get("Age"), "0")
	expect.Equal(t, "asked", p.asked(), "") // the whole, with a condition
	f.stored()
	a = f.get("/", "Range: bytes=50-149", "Cache-Control: max-age=30")
	expect.Equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; hit")
	expect.Equal(t, "asked", p.asked(), "")
	a = f.get("/", "Range: bytes=50-149", "Cache-Control: no-cache")
	expect.Equal(t, "Cache-Status", a.withoutTTL(), "cacheguard; fwd=request; fwd-status=304; stored")
	expect.Equal(t, "asked", p.asked(), "")
}

// A slice that a later record of its page vouches for is kept as long as that record, without asking the handler.
func TestASliceLivesAsLongAsThePageThatVouchesForIt(t *testing.T) {
	t.Parallel()
	f, p, aged := newAgedFilm(t, 1)
	f.warm("/", "Range: bytes=0-9")
	aged.Store(false)
	redistest.Await(t, "the slice is kept for longer", func() bool {
		expect.Equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
		return f.sliceTTL() > defaultKeepFor
	})
	expect.Equal(t, "asked", p.asked(), " 0-99 ")
}

// A page that may be served stale is served with the slices that are stored while the handler fails.
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
	f.warm("/", "Range: bytes=0-9")
	fails.Store(true)
	a := f.get("/", "Range: bytes=5-9")
	expect.Equal(t, "status", a.StatusCode, http.StatusPartialContent)
	expect.Equal(t, "body", a.body, filmed("a")[5:10])
	expect.Equal(t, "stale", f.count(Stale), 1)
	expect.Equal(t, "a slice that there is not", f.get("/", "Range: bytes=200-201").StatusCode, http.StatusServiceUnavailable)
}

// sliceTTL is how long the only slice will be kept.
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

// A 304 with another validator does not confirm the slices, which have the old one.
func TestASlicedPageIsNotConfirmedByA304WithAnotherValidator(t *testing.T) {
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
	f.warm("/", "Range: bytes=0-9")
	aged.Store(false)
	p.asked()
	expect.Equal(t, "body", f.get("/", "Range: bytes=0-9").body, filmed("a")[:10])
	expect.Equal(t, "asked", p.asked(), "") // the whole, without a condition
	f.stored()
	expect.Equal(t, "ETag", f.marked("/").Get("Etag"), `"a"`)
}

func TestASliceIsRequestedWithIfRange(t *testing.T) {
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
		expect.Equal(t, name, h.Get(name), want)
	}
}
