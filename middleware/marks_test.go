package middleware

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/middleware/internal/record"
)

// expiredMark is a mark whose time is up.
func expiredMark(path string) record.Record {
	received := time.Now().Add(-defaultPassFor - time.Second)
	return record.Record{Kind: record.PassThrough, ID: "a", Location: "//" + host + path, Received: received, Until: defaultPassFor}
}

// mark stores a mark whose time is up, with the reason why it was made.
func (f *fleet) mark(path, why string) {
	f.t.Helper()
	rec := expiredMark(path)
	rec.SetWhy(why)
	f.keep(path, rec)
}

// keep stores a record of a page.
func (f *fleet) keep(path string, rec record.Record) {
	f.t.Helper()
	_, err := cacheguard.Get(f.t.Context(), f.guards[0], f.pageKey(path), func(ctx context.Context) ([]byte, error) {
		cacheguard.SetTTL(ctx, time.Minute)
		return rec.Encode(), nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// marked returns the record of a page; nil if there is none.
func (f *fleet) marked(path string) *record.Record {
	f.t.Helper()
	raw, _, err := cacheguard.Fetch(f.t.Context(), f.guards[0], f.pageKey(path), cacheguard.Source[[]byte]{})
	if err != nil {
		return nil
	}
	rec, err := record.Decode(raw)
	if err != nil {
		f.t.Fatal(err)
	}
	return rec
}

func TestRequestsDoNotWaitForOneAnotherWhenAMarkExpires(t *testing.T) {
	t.Parallel()
	p := newPage(says("mine", "Cache-Control: private")).held()
	f := newFleet(t, 1, Config{}, p)
	f.mark("/", "")
	var users []<-chan answer
	for range 4 {
		users = append(users, f.async(0, "/"))
	}
	for range users {
		<-p.begun // all of them, although none has ended
	}
	close(p.hold)
	for _, c := range users {
		expect.Equal(t, "body", (<-c).body, "mine")
	}
	redistest.Await(t, "the mark is renewed", func() bool {
		rec := f.marked("/")
		return rec != nil && time.Since(rec.Received) < defaultPassFor
	})
	expect.Equal(t, "calls", p.calls.Load(), 4)
}

func TestAPageThatCanBeStoredAgainIsStoredWhenItsMarkExpires(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{}, p)
	f.mark("/", "")
	redistest.Await(t, "it is stored", func() bool {
		f.get("/")
		rec := f.marked("/")
		return rec != nil && rec.Kind == record.Stored
	})
}

// Each range of a page shows its length, so a page that is too large is known as such from ranges alone.
func TestAPageThatIsStillTooLargeIsNotLoadedWholeWhenItsMarkExpires(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"range": {http.MethodGet, "Range: bytes=2-4"}, "whole": {http.MethodGet}, "HEAD": {http.MethodHead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader(strings.Repeat("0123456789", 100)))
			})
			f := newFleet(t, 1, Config{MaxBody: 100}, p)
			f.mark("/", "")
			f.do(0, lines[0], "/", lines[1:]...)
			redistest.Await(t, "the mark is renewed", func() bool {
				rec := f.marked("/")
				return rec != nil && time.Since(rec.Received) < defaultPassFor
			})
			f.do(0, lines[0], "/", lines[1:]...)
			expect.Equal(t, "calls", p.calls.Load(), 2)
		})
	}
}

func TestAPageThatIsNoLongerTooLargeIsStoredEvenIfOnlyRangesAreRequested(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{MaxBody: 100}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader("0123456789"))
	}))
	f.mark("/", "")
	redistest.Await(t, "it is stored", func() bool {
		expect.Equal(t, "body", f.get("/", "Range: bytes=2-4").body, "234")
		rec := f.marked("/")
		return rec != nil && rec.Kind == record.Stored
	})
}

func TestAMarkIsNotRenewedByAResponseThatDoesNotShowTheSizeOfThePage(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"a large error":                "500|Content-Length: 1000",
		"a part of an unknown whole":   "206|Content-Range: bytes 2-4/*|body 234",
		"a large part of a small page": "206|Content-Range: bytes 0-999/10|Content-Length: 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, header, body := parseReply(reply)
			f := newFleet(t, 1, Config{MaxBody: 100}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), header)
				w.WriteHeader(status)
				says(body)(w, nil)
			}))
			f.mark("/", "")
			_, _ = f.try(0, http.MethodGet, "/", "Range: bytes=2-4") // the length of some of them is not true
			redistest.Await(t, "the mark is gone", func() bool { return f.marked("/") == nil })
		})
	}
}

// The handler does not see the condition, as its response may be for all.
func TestAConditionalRequestForAPrivatePageIsEvaluatedAgainstTheHandlersResponse(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{PassFor: -1}, says("mine", "Cache-Control: private", `ETag: "a"`))
	for range 2 {
		a := f.get("/", `If-None-Match: "b", W/"a"`)
		expect.Equal(t, "status", a.StatusCode, http.StatusNotModified)
		expect.Equal(t, "ETag", a.Header.Get("ETag"), `"a"`)
		expect.Equal(t, "body", a.body, "")
		expect.Equal(t, "another", f.get("/", `If-None-Match: "b"`).body, "mine")
	}
}

// The local tier may have an expired mark when Redis already has a page. The state of the mark says nothing about the page.
func TestAPageIsNotConfusedWithTheMarkThatWasReadBefore(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Host = host
	x := &exchange{request: request{cache: f.caches[0], r: r, location: "//" + host + "/"}}
	l := x.newLookup(variant{}, "uri-miss")
	mark := expiredMark("/")
	expect.Equal(t, "the mark", l.evaluate(mark.Encode()), cacheguard.Refresh)
	page := record.Record{Kind: record.Stored, Status: http.StatusOK, Location: x.location, Received: time.Now()}
	expect.Equal(t, "a stale page", l.evaluate(page.Encode()), cacheguard.Replace)
	expect.Equal(t, "nothing is waited for", l.markHolds == nil && x.checked == nil, true)
}

// What the local tier still has may be gone from Redis. Then the request waits for the load, and the load for nobody.
func TestWhatOnlyTheLocalTierHasIsReplacedForTheRequestThatFindsIt(t *testing.T) {
	t.Parallel()
	for name, rec := range map[string]record.Record{
		"a mark": expiredMark("/"),
		"a page": {
			Kind: record.Stored, ID: "a", Location: "//" + host + "/", Received: time.Now().Add(-time.Minute), Status: http.StatusOK,
			Terms: record.Terms{Explicit: true, Lifetime: time.Second, SWR: time.Hour},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, p := redistest.Start(t), newPage(says("new", "Cache-Control: max-age=60"))
			f := newFleetOn(t, redis, 1, Config{}, cacheguard.Config{Local: cacheguard.LocalConfig{MaxEntries: 100, TTL: time.Hour}}, p)
			f.keep("/", rec)
			redistest.Await(t, "the tier has it", func() bool {
				_, how, err := cacheguard.Fetch(t.Context(), f.guards[0], f.pageKey("/"), cacheguard.Source[[]byte]{})
				return err == nil && how == cacheguard.Local
			})
			expect.Equal(t, "forget", redis.Client(t).FlushAll(t.Context()).Err(), nil)
			expect.Equal(t, "body", f.get("/").body, "new")
			expect.Equal(t, "calls", p.calls.Load(), 1)
		})
	}
}

func TestAMarkEndsWithTheFirstResponseWhoseHeaderRefutesIt(t *testing.T) {
	t.Parallel()
	for reason, line := range map[string]string{"set-cookie": "Set-Cookie: a=b", "private": "Cache-Control: private", "no-lifetime": "Vary: Accept"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			name, value, _ := strings.Cut(line, ": ")
			var mended atomic.Bool
			p := newPage(func(w http.ResponseWriter, r *http.Request) {
				if !mended.Load() {
					w.Header().Set(name, value)
				} else {
					w.Header().Set("Cache-Control", "max-age=60")
				}
				says("page")(w, r)
			})
			f := newFleet(t, 1, Config{PassFor: time.Hour}, p)
			for range 2 {
				expect.Equal(t, "before", strings.HasSuffix(f.get("/").cacheStatus(), "; detail="+reason), true)
			}
			mended.Store(true)
			expect.Equal(t, "the first after that", f.get("/").cacheStatus(), "cacheguard; fwd=uri-miss")
			f.get("/")
			f.get("/")
			expect.Equal(t, "calls", p.calls.Load(), 4)
			mended.Store(false)
			expect.Equal(t, "stored", strings.HasPrefix(f.get("/").cacheStatus(), "cacheguard; hit"), true)
		})
	}
}

// What its header says was never what was in the way: it must not be loaded again and again, while all others wait.
func TestAMarkForWhatNoHeaderShowsStays(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for range 20 {
			_, _ = w.Write([]byte("too large")) // of which nothing is announced
			_ = http.NewResponseController(w).Flush()
		}
	})
	f := newFleet(t, 1, Config{PassFor: time.Hour, MaxBody: 100}, p)
	f.get("/")
	made := f.marked("/")
	for range 3 {
		expect.Equal(t, "Cache-Status", f.get("/").cacheStatus(), "cacheguard; fwd=uri-miss; detail=too-large")
	}
	expect.Equal(t, "the mark", f.marked("/").ID, made.ID)
}
