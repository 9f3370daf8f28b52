package middleware

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redistest"
	"github.com/cacheguard/go/middleware/internal/record"
	"github.com/cacheguard/go/middleware/internal/writer"
)

// mark has a page known as one that cannot be stored, for so long.
func (f *fleet) mark(path string, age time.Duration) {
	f.t.Helper()
	rec := record.Record{
		Kind: record.PassThrough, ID: "a", Location: "http://" + host + path, Received: time.Now().Add(-age), Until: defaultPassFor,
	}
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

func TestUsersOfAPageThatCannotBeStoredDoNotWaitForOneAnotherWhenPassForIsOver(t *testing.T) {
	t.Parallel()
	p := newPage(says("mine", "Cache-Control: private")).held()
	f := newFleet(t, 1, Config{}, p)
	f.mark("/", defaultPassFor+time.Second)
	var users []<-chan answer
	for range 4 {
		users = append(users, f.async(0, "/"))
	}
	for range users {
		<-p.begun // all of them, although none has ended
	}
	close(p.hold)
	for _, c := range users {
		equal(t, "body", (<-c).body, "mine")
	}
	redistest.Await(t, "it is known for another while", func() bool {
		rec := f.marked("/")
		return rec != nil && time.Since(rec.Received) < defaultPassFor
	})
	equal(t, "calls", p.calls.Load(), 4)
}

func TestAPageThatCanBeStoredAgainIsStoredWhenPassForIsOver(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", "Cache-Control: max-age=60"))
	f := newFleet(t, 1, Config{}, p)
	f.mark("/", defaultPassFor+time.Second)
	redistest.Await(t, "it is stored", func() bool {
		f.get("/")
		rec := f.marked("/")
		return rec != nil && rec.Kind == record.Stored
	})
}

// A page that is larger than MaxBody stays so while all that is asked for of it are ranges: its length is in each of them.
func TestAPageThatIsTooLargeIsNotAskedForAsAWholeAgainWhenPassForIsOver(t *testing.T) {
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
			f.mark("/", defaultPassFor+time.Second)
			f.do(0, lines[0], "/", lines[1:]...)
			redistest.Await(t, "it is known for another while", func() bool {
				rec := f.marked("/")
				return rec != nil && time.Since(rec.Received) < defaultPassFor
			})
			f.do(0, lines[0], "/", lines[1:]...)
			equal(t, "calls", p.calls.Load(), 2)
		})
	}
}

func TestAPageThatIsNoLongerTooLargeIsStoredAlthoughRangesAloneAreAskedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{MaxBody: 100}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		http.ServeContent(w, r, "page.txt", time.Time{}, strings.NewReader("0123456789"))
	}))
	f.mark("/", defaultPassFor+time.Second)
	redistest.Await(t, "it is stored", func() bool {
		equal(t, "body", f.get("/", "Range: bytes=2-4").body, "234")
		rec := f.marked("/")
		return rec != nil && rec.Kind == record.Stored
	})
}

func TestAMarkIsNotRenewedByWhatDoesNotSayHowLargeThePageIs(t *testing.T) {
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
				writer.SetHeader(w.Header(), maps.All(header))
				w.WriteHeader(status)
				says(body)(w, nil)
			}))
			f.mark("/", defaultPassFor+time.Second)
			_, _ = f.try(0, http.MethodGet, "/", "Range: bytes=2-4") // the length of some of them is not true
			redistest.Await(t, "it is forgotten", func() bool { return f.marked("/") == nil })
		})
	}
}

// The condition is kept from the handler, as its response may be for all.
func TestAConditionalRequestForAPrivatePageIsAnsweredByWhatTheHandlerSays(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{PassFor: -1}, says("mine", "Cache-Control: private", `ETag: "a"`))
	for range 2 {
		a := f.get("/", `If-None-Match: "b", W/"a"`)
		equal(t, "status", a.StatusCode, http.StatusNotModified)
		equal(t, "ETag", a.Header.Get("ETag"), `"a"`)
		equal(t, "body", a.body, "")
		equal(t, "another", f.get("/", `If-None-Match: "b"`).body, "mine")
	}
}

// The local tier may have a mark whose time is up where Redis has a page already: what is told of the one says nothing of the other.
func TestAPageIsNotTakenForTheMarkThatWasReadBefore(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", nil)
	x := &exchange{cache: f.caches[0], r: r, location: "http://" + host + "/"}
	l := newLookup(x, variant{}, "uri-miss")
	mark := record.Record{
		Kind: record.PassThrough, Location: x.location, Received: time.Now().Add(-defaultPassFor - time.Second), Until: defaultPassFor,
	}
	equal(t, "the mark", l.evaluate(mark.Encode()), cacheguard.Refresh)
	page := record.Record{Kind: record.Stored, Status: http.StatusOK, Location: x.location, Received: time.Now()}
	equal(t, "a stale page", l.evaluate(page.Encode()), cacheguard.Replace)
	equal(t, "nothing is waited for", l.markHolds == nil && x.checked == nil, true)
}
