package middleware

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redistest"
)

// echo answers with everything an attacker could want to see in another's response.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Cache-Control", "max-age=60")
	answer := []string{r.Method, r.Host, r.URL.RequestURI(), string(body)}
	for name, values := range r.Header {
		if name != "User-Agent" && name != "Cache-Control" {
			answer = append(answer, values...)
		}
	}
	_, _ = io.WriteString(w, strings.Join(answer, ","))
})

func TestNothingUnkeyedShapesAStoredResponse(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"host":                      "Host: evil.example",
		"forwarded host":            "X-Forwarded-Host: evil.example",
		"forwarded scheme":          "X-Forwarded-Proto: evil",
		"Forwarded":                 "Forwarded: host=evil.example",
		"the URL by another header": "X-Original-URL: /evil",
		"the URL by a third header": "X-Rewrite-URL: /evil",
		"the method":                "X-HTTP-Method-Override: EVIL",
		"the scheme, as echo reads": "X-Url-Scheme: evil",
		"the scheme, as it was":     "X-Forwarded-Protocol: evil",
		"the scheme, by nginx":      "X-Scheme: evil",
		"the scheme, by IIS":        "Front-End-Https: evil",
		"the path":                  "X-Forwarded-Path: /evil",
		"the URL, by Traefik":       "X-Forwarded-Uri: /evil",
		"the URL, by nginx":         "X-Original-Uri: /evil",
		"the root, by WSGI":         "X-Script-Name: /evil",
		"who asks":                  "Authorization: evil",
		"a range":                   "Range: bytes=0-1",
		"a condition":               `If-None-Match: "evil"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1, Config{}, echo)
			clean := newFleet(t, 1, Config{}, echo).get("/a?b=c").body
			f.get("/a?b=c", header)
			equal(t, "what others get", f.get("/a?b=c").body, clean)
			f.get("/a?b=c", header)
			equal(t, "what others get from the cache", f.get("/a?b=c").body, clean)
		})
	}
}

func TestABodyOfAGetShapesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, echo)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.urls[0]+"/", strings.NewReader("evil"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		res, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if a := f.get("/"); strings.Contains(a.body, "evil") {
			t.Errorf("got %q", a.body)
		}
	}
}

func TestPathsThatOnlyLookAlikeAreDifferentPages(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, echo)
	seen := make(map[string]string)
	for range 2 {
		for _, path := range []string{"/a/b", "/a%2Fb", "/a//b", "/a/b/", "/a/./b", "/A/b", "/a/b;x", "/a/b?", "/a/b?x", "/a/b%3Fx", "/a/b?x=", "/a/%62"} {
			body := f.get(path).body
			if before, found := seen[body]; found && before != path {
				t.Errorf("%s and %s are one page", before, path)
			}
			seen[body] = path
		}
	}
}

func TestALongURLIsAPageOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, echo)
	long := "/" + strings.Repeat("x", 3000)
	a, b := f.get(long+"1").body, f.get(long+"2").body
	if a == b {
		t.Error("two long URLs are one page")
	}
	equal(t, "a hit", f.get(long+"1").body, a)
}

// A client that has a page made anew in a way that is refused must not take it away from the others.
func TestARefusedRequestDoesNotUnseatAFreshPage(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Bad") != "" {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		says("good", "Cache-Control: max-age=60")(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	equal(t, "attack", f.get("/", "X-Bad: 1", "Cache-Control: no-cache").StatusCode, http.StatusBadRequest)
	equal(t, "afterwards", f.get("/").body, "good")
	equal(t, "calls", p.calls.Load(), 2)
}

// A client that reads slowly must not hold up those who wait for the same page.
func TestASlowClientHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 900_000)
	p := newPage(says(big, "Cache-Control: max-age=60")).held()
	f := newFleet(t, 1, Config{}, p)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.urls[0], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-p.begun
	other := f.async(0, "/")
	f.awaitJoined(1)
	close(p.hold)
	equal(t, "bytes", len((<-other).body), len(big))
	equal(t, "calls", p.calls.Load(), 1)
}

func TestAnEntryCannotBreakOutOfItsField(t *testing.T) {
	t.Parallel()
	for name, rec := range map[string]record{
		"a line break in a value":   {kind: stored, status: 200, header: []pair{{"X-A", "1\r\nX-Evil: 1"}}},
		"a line feed in a value":    {kind: stored, status: 200, header: []pair{{"X-A", "1\nX-Evil: 1"}}},
		"a line break in a name":    {kind: stored, status: 200, header: []pair{{"X-A\r\nX-Evil", "1"}}},
		"a colon in a name":         {kind: stored, status: 200, header: []pair{{"X-A:", "1"}}},
		"a line break in a trailer": {kind: stored, status: 200, trailer: []pair{{"X-A", "1\r\nX-Evil: 1"}}},
		"no status":                 {kind: stored, status: 0},
		"an informational status":   {kind: stored, status: 101},
		"no kind":                   {status: 200},
	} {
		if _, err := decodeRecord(rec.encode()); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestWhatIsNoRecordIsMadeAnew(t *testing.T) {
	t.Parallel()
	p := newPage(says("good", "Cache-Control: max-age=60"))
	f := newFleet(t, 1, Config{}, p)
	key := pageKey(anybody, "http://"+host+"/")
	if _, err := cacheguard.Get(t.Context(), f.guards[0], key, func(context.Context) ([]byte, error) { return []byte("evil"), nil }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		equal(t, "body", f.get("/").body, "good")
	}
	equal(t, "calls", p.calls.Load(), 1)
}

func TestInformationalResponsesAndTrailersPass(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-More", "43")
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		a := f.get("/")
		equal(t, "body", a.body, "hello")
		equal(t, "trailer", a.Trailer.Get("X-Sum"), "42")
		equal(t, "unannounced trailer", a.Trailer.Get("X-More"), "43")
		equal(t, "the trailer as a header", a.Header.Get("X-Sum"), "")
	}
	equal(t, "calls", p.calls.Load(), 1)
}

func TestAHandlerMayHijack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhijacked")
		_ = rw.Flush()
	}))
	for range 2 {
		equal(t, "body", f.get("/").body, "hijacked")
		equal(t, "body of a request that is passed on", f.get("/", "Cache-Control: no-store").body, "hijacked")
	}
}

func TestAnEventStreamIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			_, _ = io.WriteString(w, "data\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	res, err := f.client.Get(f.urls[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for range 2 {
		if line, err := lines.ReadString('\n'); line != "data\n" || err != nil {
			t.Errorf("got %q, %v", line, err)
		}
		next <- struct{}{}
	}
}

func TestWhatAHandlerFlushesWithoutSayingThatItMayBeStoredIsNot(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-next
	})
	f := newFleet(t, 1, Config{DefaultTTL: 60e9}, p)
	res, err := f.client.Get(f.urls[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	close(next)
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	_ = res.Body.Close()
	redistest.Await(t, "it is over", func() bool { return f.count(Passed) == 1 })
}

func TestATruncatedBodyIsNotStored(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "12345")
	})
	f := newFleet(t, 1, Config{}, p)
	for range 2 {
		if _, err := f.try(0, "GET", "/"); err == nil {
			t.Error("the client was not told")
		}
	}
	equal(t, "calls", p.calls.Load(), 2)
}

func TestAStalePageIsServedWhileOneInstanceMakesItAnew(t *testing.T) {
	t.Parallel()
	p := newPage(says("old", "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70", `ETag: "a"`))
	f := newFleet(t, 2, Config{}, p)
	f.get("/")
	<-p.begun
	p.serve, p.hold = says("new", "Cache-Control: max-age=60"), make(chan struct{})
	for i := range 10 {
		equal(t, "body", f.do(i%2, "GET", "/").body, "old")
	}
	<-p.begun
	close(p.hold)
	redistest.Await(t, "the page is new", func() bool { return f.get("/").body == "new" })
	equal(t, "calls", p.calls.Load(), 2)
	equal(t, "stale", f.count(Stale) >= 10, true)
}

// chi takes its routing context back when a request is answered. A page that is made in the background must not see another
// request's.
func TestRoutesAreChisWhenAPageIsMadeInTheBackground(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	hold, ids := make(chan struct{}), make(chan string, 10)
	router := chi.NewRouter()
	router.Use(f.caches[0].Handler)
	first := true
	router.Get("/products/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !first {
			<-hold
		}
		first = false
		ids <- chi.URLParam(r, "id")
		says("p"+chi.URLParam(r, "id"), "Cache-Control: max-age=60, stale-while-revalidate=600", "Age: 70")(w, r)
	})
	router.Get("/other/{id}", says("other", "Cache-Control: no-store"))
	f.servers[0].Config.Handler = router
	f.get("/products/1")
	equal(t, "made", <-ids, "1")
	equal(t, "stale", f.get("/products/1").body, "p1")
	for range 20 {
		f.get("/other/2")
	}
	close(hold)
	equal(t, "made in the background", <-ids, "1")
}

func TestRoutePatternsAreTold(t *testing.T) {
	t.Parallel()
	routes := make(chan string, 10)
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	cache, err := New(f.guards[0], Config{OnResponse: func(_ *http.Request, res Response) { routes <- res.Route }})
	if err != nil {
		t.Fatal(err)
	}
	router := chi.NewRouter()
	router.Use(cache.Handler)
	router.Get("/products/{id}", says("p", "Cache-Control: max-age=60"))
	router.Post("/products/{id}", says("p"))
	mux := http.NewServeMux()
	mux.Handle("/", router)
	mux.Handle("GET /std/{id}", cache.Handler(says("p", "Cache-Control: max-age=60")))
	f.servers[0].Config.Handler = mux
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/products/1", "/products/{id}"},
		{"GET", "/products/1", "/products/{id}"},
		{"POST", "/products/1", "/products/{id}"},
		{"GET", "/std/1", "GET /std/{id}"},
		{"GET", "/std/1", "GET /std/{id}"},
	} {
		f.do(0, c.method, c.path)
		equal(t, c.method+" "+c.path, <-routes, c.want)
	}
}

func TestTheKeyIsToldWhenAskedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{KeyInStatus: true, Name: "shop"}, says("x"))
	a := f.get(`/a"b?q=` + url.QueryEscape("é"))
	if want := `shop; fwd=uri-miss; fwd-status=200; key="http://` + host + `/a%22b?q=%C3%A9"`; a.cacheStatus() != want {
		t.Errorf("got %q, want %q", a.cacheStatus(), want)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	rec := record{kind: stored, status: 200, header: []pair{{"X-A", "1"}}, versions: []pair{{"a", "b"}}, body: []byte("body")}
	f.Add(rec.encode())
	f.Add([]byte("h1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(rec.encode())
		if err != nil {
			t.Fatal(err)
		}
		if string(again.encode()) != string(rec.encode()) {
			t.Error("a record changes by being encoded and decoded")
		}
	})
}

func FuzzDirectives(f *testing.F) {
	f.Add(`max-age=60, no-cache="a, b", private`)
	f.Fuzz(func(_ *testing.T, line string) {
		parseDirectives([]string{line})
		targeted(http.Header{"X": {line}}, []string{"X"})
		listsETag([]string{line}, `"a"`)
	})
}
