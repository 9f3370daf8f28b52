package middleware

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

// echo answers with everything that an attacker could want to appear in another client's response.
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
		"the host, as CGI reads":    "X_Forwarded_Host: evil",
		"the scheme, by CloudFront": "CloudFront-Forwarded-Proto: evil",
		"the scheme, by Cloudflare": "Cf-Visitor: evil",
		"TLS, by Azure":             "X-Arr-Ssl: evil",
		"TLS, by Fastly":            "Fastly-Ssl: evil",
		"the path, by Envoy":        "X-Envoy-Original-Path: /evil",
		"the host, by Envoy":        "X-Envoy-Original-Host: evil",
		"the path before Traefik":   "X-Replaced-Path: /evil",
		"the host before nginx":     "X-Original-Forwarded-Host: evil",
		"credentials":               "Authorization: evil",
		"a range":                   "Range: bytes=0-1",
		"a condition":               `If-None-Match: "evil"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1, Config{}, echo)
			clean := newFleet(t, 1, Config{}, echo).get("/a?b=c").body
			f.get("/a?b=c", header)
			expect.Equal(t, "what others get", f.get("/a?b=c").body, clean)
			f.get("/a?b=c", header)
			expect.Equal(t, "what others get from the cache", f.get("/a?b=c").body, clean)
		})
	}
}

func TestTheBodyOfAGetDoesNotShapeAStoredResponse(t *testing.T) {
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
	expect.Equal(t, "a hit", f.get(long+"1").body, a)
}

// A client whose request is refused must not take the page away from the others.
func TestARefusedRequestDoesNotReplaceAFreshPage(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Bad") != "" {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		says("good", fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	expect.Equal(t, "attack", f.get("/", "X-Bad: 1", "Cache-Control: no-cache").StatusCode, http.StatusBadRequest)
	expect.Equal(t, "afterwards", f.get("/").body, "good")
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

// A private answer must not do so either, or one request per PassFor would keep a page out of the cache.
func TestAPrivateAnswerDoesNotReplaceAFreshPage(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			says("mine", "Cache-Control: private")(w, r)
			return
		}
		says("good", fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/")
	expect.Equal(t, "attack", f.get("/", "Cookie: me", "Cache-Control: no-cache").body, "mine")
	expect.Equal(t, "afterwards", f.get("/").body, "good")
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

// A client that reads slowly must not hold up other requests for the same page.
func TestASlowClientHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 900_000)
	p := newPage(says(big, fresh)).held()
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
	f.joins(1)
	close(p.hold)
	expect.Equal(t, "bytes", len((<-other).body), len(big))
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestAValueThatIsNotARecordIsReplaced(t *testing.T) {
	t.Parallel()
	p := newPage(says("good", fresh))
	f := newFleet(t, 1, Config{}, p)
	key := f.pageKey("/")
	if _, err := cacheguard.Get(t.Context(), f.guards[0], key, func(context.Context) ([]byte, error) { return []byte("evil"), nil }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		expect.Equal(t, "body", f.get("/").body, "good")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

func TestKeyInStatusAddsTheKeyToCacheStatus(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{KeyInStatus: true, Name: "shop"}, says("x"))
	a := f.get(`/a"b?q=` + url.QueryEscape("é"))
	if want := `shop; fwd=uri-miss; fwd-status=200; detail=no-lifetime; key="//` + host + `/a%22b?q=%C3%A9"`; a.cacheStatus() != want {
		t.Errorf("got %q, want %q", a.cacheStatus(), want)
	}
}

// Clients choose URLs and the values of fields, and must not be able to fill Redis with them.
func TestClientsCannotStoreLongKeysAndFieldsInRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, says("page", fresh, "Vary: X-A"))
	big := strings.Repeat("x", 100_000)
	f.get("/"+big, "X-A: "+big)
	f.get("/a", "X-A: "+big)
	f.get("/a", "X-Forwarded-Host: "+big)
	f.get("/a", "X-Forwarded-Host: "+big+"y")
	expect.Equal(t, "a hit", f.get("/a", "X-A: "+big).cacheStatus()[:len("cacheguard; hit")], "cacheguard; hit")
	rdb := shared.Client(t)
	keys, err := rdb.Keys(t.Context(), f.prefix+"*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		size, err := rdb.StrLen(t.Context(), key).Result()
		if err == nil && int(size)+len(key) > 10_000 {
			t.Errorf("%.40s has %d bytes", key, size)
		}
	}
}
