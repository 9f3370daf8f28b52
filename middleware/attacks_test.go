package middleware

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// docs/http.md names the research that each kind of attack comes from, and has a row for each kind.

// gullible answers with all that an attacker could want to appear in the answers to others: whatever some framework believes.
var gullible = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Cache-Control", "max-age=60")
	seen := []string{r.Method, r.Host, r.URL.String(), r.RequestURI, string(body)}
	lax := strings.FieldsFunc(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' || c == '?' }) // as some frameworks split it
	seen = append(seen, lax...)
	for _, name := range shaping {
		seen = append(seen, r.Header[http.CanonicalHeaderKey(name)]...)
	}
	if len(r.Header.Get("X-Oversized")) > 8000 { // as servers do whose limit is lower than that of the proxy in front
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, strings.Join(seen, "|"))
})

// shaping are fields that frameworks believe.
var shaping = []string{
	"X-Forwarded-Host", "X-Forwarded-Scheme", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Original-Url", "X-Rewrite-Url", "X-Host",
	"X-Http-Method-Override", "X-Forwarded-Server", "Forwarded", "X-Forwarded-Prefix", "X-Http-Host-Override", "Authorization",
}

// poisonings are attacks on what others get. The victim asks for /page?id=1.
var poisonings = []struct {
	kind, name string
	cfg        Config
	attack     []string // a request line, and fields; Body: what follows
}{
	{"unkeyed fields", "another host", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-Forwarded-Host: evil"}},
	{"unkeyed fields", "a host twice", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-Forwarded-Host: evil", "X-Forwarded-Host: " + host}},
	{"unkeyed fields", "a scheme that redirects", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-Forwarded-Scheme: nothttps", "X-Forwarded-Host: evil"}},
	{"unkeyed fields", "another URL", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-Original-URL: /evil"}},
	{"unkeyed fields", "another URL, as IIS has it", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-Rewrite-URL: /evil"}},
	{"unkeyed fields", "a port", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-Forwarded-Port: 1337"}},
	{"unkeyed fields", "the standard field", Config{}, []string{"GET /page?id=1 HTTP/1.1", "Forwarded: host=evil;proto=x"}},
	{"unkeyed fields", "a credential", Config{}, []string{"GET /page?id=1 HTTP/1.1", "Authorization: evil"}},
	{"unkeyed fields", "spelled for CGI", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X_Forwarded_Host: evil"}},
	{"entanglement", "a parameter that does not count", Config{Key: Key{IgnoreQuery: []string{"utm_*"}}}, []string{"GET /page?id=1&utm_content=evil HTTP/1.1"}},
	{"entanglement", "a GET with a body", Config{}, []string{"GET /page?id=1 HTTP/1.1", "Content-Length: 4", "Body: evil"}},
	{"entanglement", "a GET with a chunked body", Config{}, []string{"GET /page?id=1 HTTP/1.1", "Transfer-Encoding: chunked", "Body: 4\r\nevil\r\n0\r\n\r\n"}},
	{"entanglement", "the port of the Host", Config{}, []string{"GET http://" + host + ":1337/page?id=1 HTTP/1.1"}},
	{"entanglement", "the separator of our keys", Config{}, []string{"GET /page?id=1%0aevil HTTP/1.1"}},
	{"entanglement", "a method in a field", Config{}, []string{"GET /page?id=1 HTTP/1.1", "X-HTTP-Method-Override: DELETE"}},
	{"cloaking", "a parameter behind a semicolon", Config{Key: Key{IgnoreQuery: []string{"utm_*"}}}, []string{"GET /page?id=1&utm_content=x;id=evil HTTP/1.1"}},
	{"cloaking", "a parameter before the one", Config{Key: Key{IgnoreQuery: []string{"utm_*"}}}, []string{"GET /page?utm_content=x;id=evil&id=1 HTTP/1.1"}},
	{"cloaking", "a second question mark", Config{Key: Key{IgnoreQuery: []string{"utm_*"}}}, []string{"GET /page?id=1&utm_content=x?id=evil HTTP/1.1"}},
	{"cloaking", "a name in other letters", Config{Key: Key{OnlyQuery: []string{"id"}}}, []string{"GET /page?id=1&ID=evil HTTP/1.1"}},
	{"cloaking", "a name in brackets", Config{Key: Key{OnlyQuery: []string{"id"}}}, []string{"GET /page?id=1&id[]=evil HTTP/1.1"}},
	{"cloaking", "the same name twice", Config{SortQuery: true}, []string{"GET /page?id=evil&id=1 HTTP/1.1"}},
	{"normalisation", "an encoded question mark", Config{}, []string{"GET /page%3fid=1 HTTP/1.1"}},
	{"normalisation", "encoded letters", Config{}, []string{"GET /p%61ge?id=1 HTTP/1.1"}},
	{"normalisation", "an encoded slash", Config{}, []string{"GET /x%2f..%2fpage?id=1 HTTP/1.1"}},
	{"normalisation", "dot segments", Config{}, []string{"GET /x/../page?id=1 HTTP/1.1"}},
	{"normalisation", "two slashes", Config{}, []string{"GET //page?id=1 HTTP/1.1"}},
	{"normalisation", "a backslash", Config{}, []string{"GET /x\\..\\page?id=1 HTTP/1.1"}},
	{"normalisation", "a star", Config{}, []string{"GET * HTTP/1.1"}},
	{"normalisation", "a star behind the host", Config{}, []string{"GET http://" + host + "*/page?id=1 HTTP/1.1"}},
	{"normalisation", "no path", Config{}, []string{"GET http://" + host + "?/page?id=1 HTTP/1.1"}},
	{"normalisation", "no host", Config{}, []string{"GET http:///page?id=1 HTTP/1.1"}},
	{"normalisation", "no slashes", Config{}, []string{"GET http:" + host + "/page?id=1 HTTP/1.1"}},
	{"normalisation", "a user", Config{}, []string{"GET http://evil@" + host + "/page?id=1 HTTP/1.1"}},
	{"normalisation", "a scheme with that of the connection", Config{}, []string{"GET https+http://" + host + "/page?id=1 HTTP/1.1"}},
	{"normalisation", "the whole URL", Config{}, []string{"GET HTTP://" + strings.ToUpper(host) + "/page?id=1 HTTP/1.1"}},
	{"denial of service", "an error that says that it may be stored", Config{StoreErrors: map[int]time.Duration{404: time.Hour}}, []string{"GET /page?id=1 HTTP/1.1", "X-Oversized: " + strings.Repeat("x", 9000)}},
	{"denial of service", "a part", Config{}, []string{"GET /page?id=1 HTTP/1.1", "Range: bytes=0-0"}},
	{"denial of service", "a condition", Config{}, []string{"GET /page?id=1 HTTP/1.1", "If-None-Match: *"}},
	{"denial of service", "a connection that drops fields", Config{}, []string{"GET /page?id=1 HTTP/1.1", "Connection: close, Authorization", "Authorization: x"}},
}

func TestNobodyPoisonsThePagesOfOthers(t *testing.T) {
	t.Parallel()
	for _, c := range poisonings {
		t.Run(c.kind+": "+c.name, func(t *testing.T) {
			t.Parallel()
			const victim = "/page?id=1"
			clean := newFleet(t, 1, c.cfg, gullible).get(victim)
			f := newFleet(t, 1, c.cfg, gullible)
			lines := slices.Clone(c.attack)
			if last, ok := strings.CutPrefix(lines[len(lines)-1], "Body: "); ok {
				f.rawBody(t, lines[:len(lines)-1], last)
			} else {
				f.raw(t, lines...)
			}
			f.stored()
			for range 2 {
				a := f.get(victim)
				expect.Equal(t, "what others get", fmt.Sprint(a.StatusCode, a.body), fmt.Sprint(clean.StatusCode, clean.body))
			}
			expect.Equal(t, "it comes from the cache", strings.HasPrefix(f.get(victim).cacheStatus(), "cacheguard; hit"), true)
		})
	}
}

// account serves the page of the user who is logged in, whatever follows its path, as many routers do. It says nothing about caching, or forbids it.
func account(control string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if control != "" {
			w.Header().Set("Cache-Control", control)
		}
		seen, _ := url.PathUnescape(r.URL.Path)
		if !strings.HasPrefix(path.Clean("/"+seen), "/account") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "the account of "+r.Header.Get("Cookie")+r.Header.Get("Authorization"))
	}
}

// deceptions are URLs that a victim is led to, so that the cache takes their account for a file.
var deceptions = []struct{ name, url string }{
	{"path parameter", "/account/x.css"},
	{"a file that is not there", "/account/nonexistent.jpg"},
	{"an encoded line break", "/account%0Ax.css"},
	{"an encoded semicolon", "/account%3Bx.css"},
	{"a semicolon", "/account;x.css"},
	{"an encoded number sign", "/account%23x.css"},
	{"an encoded question mark", "/account%3Fx.css"},
	{"an encoded null", "/account%00x.css"},
	{"a dollar", "/account$x.css"},
	{"a static directory", "/static/..%2faccount"},
	{"a static directory, with dots", "/static/../account"},
	{"a file of the root", "/account/..%2frobots.txt"},
	{"a query", "/account?x.css"},
}

func TestNobodyIsDeceivedIntoStoringTheirAccount(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"Cookie: session=victim", "Authorization: victim"} {
		for control, cfg := range map[string]Config{
			"": {DefaultTTL: time.Hour, Heuristic: 0.1}, "private": {DefaultTTL: time.Hour}, "no-store": {}, "no-cache": {DefaultTTL: time.Hour},
		} {
			f := newFleet(t, 1, cfg, account(control))
			for _, c := range deceptions {
				_ = f.raw(t, "GET "+c.url+" HTTP/1.1", who)
				f.stored()
				for _, attacker := range []string{"X-A: b", "Cookie: session=attacker", "Authorization: attacker"} {
					if a := f.raw(t, "GET "+c.url+" HTTP/1.1", attacker); strings.Contains(a.body, "victim") {
						t.Errorf("%s, %q, %s: %s gets %q", c.name, control, who, attacker, a.body)
					}
				}
			}
		}
	}
}

// rawBody is raw with a body.
func (f *fleet) rawBody(t *testing.T, lines []string, body string) {
	t.Helper()
	f.raw(t, append(slices.Clone(lines), "Connection: close", "Host: "+host+"\r\n\r\n"+body+"\r\nX: y")...)
}
