package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/manual"
)

// The conformance table runs through a real client, this cache on a real server with httputil.ReverseProxy as its handler, and a real
// origin behind that.
//
// A row is two requests for a URL of its own, and the answer that the second has to get. A request is a method or a query, and header
// lines; a response is a status and header lines. A | separates them. In dates, {-60} is 60 seconds ago. Wanted is who answers:
//
//	cache      the cache, without asking the origin
//	origin     the origin, asked without a condition of the cache's
//	validated  the origin is asked whether the stored response is good
//	504        the cache, which was not allowed to ask
//
// and then what the second response has: a status, Name: value, Name~part of the value, -Name for an absent field, body text.
type row struct {
	section, name        string
	ask1, reply1         string
	ask2, reply2, wanted string
}

// rows is the conformance table.
var rows = slices.Concat(storingRows, freshnessRows, reuseRows)

// settings are Configs of the cache. The beginning of a row's name selects one.
var settings = map[string]Config{
	"":          {Target: "Shop-Cache-Control"},
	"default":   {DefaultTTL: time.Minute},
	"heuristic": {Heuristic: 0.1},
	"unguessed": {Heuristic: -1},
	"cookies":   {StoreSetCookie: true},
	"unmoved":   {IgnoreRequest: true},
	"sorted":    {SortQuery: true},
	"standsin":  {StaleIfError: time.Minute},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sections := make(map[string][]row)
	for _, r := range rows {
		sections[r.section] = append(sections[r.section], r)
	}
	if len(rows) < 250 {
		t.Errorf("%d rows", len(rows))
	}
	benches := make(map[string]*bench)
	for name, cfg := range settings {
		benches[name] = newBench(t, cfg)
	}
	id := 0
	for section, rows := range sections {
		t.Run(section, func(t *testing.T) {
			for _, r := range rows {
				id++
				path := "/" + strconv.Itoa(id)
				t.Run(r.name, func(t *testing.T) {
					setting, _, found := strings.Cut(r.name, ": ")
					if !found {
						setting = ""
					}
					benches[setting].check(t, r, path)
				})
			}
		})
	}
}

// bench is a cache between a client and an origin.
type bench struct {
	*fleet
	clock *manual.Clock // stands still during a row, however long that takes: an Age is of its dates alone

	mu    sync.Mutex
	next  string        // what the origin is to answer
	asked *http.Request // what it was asked last
	step  int           // of the row
}

func newBench(t *testing.T, cfg Config) *bench {
	b := new(bench)
	origin := httptest.NewServer(b)
	t.Cleanup(origin.Close)
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	b.fleet = newFleet(t, 1, cfg, &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	})
	b.clock = manual.New(time.Now())
	b.caches[0].clock = b.clock.Clock()
	return b
}

// ServeHTTP is the origin.
func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = r.Clone(r.Context())
	status, header, body := parseReply(b.next)
	for name, values := range header {
		if name == "No-Date" {
			w.Header()["Date"] = nil
			continue
		}
		w.Header()[name] = values
	}
	if body == "" {
		body = fmt.Sprintf("%s %d", r.Method, b.step)
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent && status != http.StatusNotModified {
		_, _ = w.Write([]byte(body))
	}
}

func parseReply(s string) (status int, h http.Header, body string) {
	status, h = 200, make(http.Header)
	for part := range strings.SplitSeq(s, "|") {
		if code, err := strconv.Atoi(part); err == nil {
			status = code
		} else if text, ok := strings.CutPrefix(part, "body "); ok {
			body = text
		} else if name, value, ok := strings.Cut(part, ":"); ok {
			h.Add(name, strings.TrimSpace(value))
		}
	}
	return status, h, body
}

var dates = regexp.MustCompile(`\{([+-]\d+)\}`)

// dated replaces {seconds} by dates.
func (b *bench) dated(s string) string {
	return dates.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.Atoi(m[1 : len(m)-1])
		return b.clock.Now().Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
	})
}

// send sends a request, and returns the response and what the origin was asked for it.
func (b *bench) send(t *testing.T, path, ask, reply string) (answer, *http.Request) {
	t.Helper()
	b.mu.Lock()
	b.next, b.asked = b.dated(reply), nil
	b.step++
	b.mu.Unlock()
	lines := strings.Split(b.dated(ask), "|")
	method, header := http.MethodGet, lines
	if first := lines[0]; !strings.Contains(first, ":") {
		header = lines[1:]
		if strings.HasPrefix(first, "?") {
			path += first
		} else if first != "" {
			method = first
		}
	}
	a, err := b.try(0, method, path, header...)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return a, b.asked
}

func (b *bench) check(t *testing.T, r row, path string) {
	t.Helper()
	b.step = 0
	b.clock.Advance(time.Since(b.clock.Now()))
	b.send(t, path, r.ask1, r.reply1)
	a, asked := b.send(t, path, r.ask2, r.reply2)
	wanted := strings.Split(b.dated(r.wanted), "|")
	got := "cache"
	switch {
	case asked != nil && (asked.Header.Get("If-None-Match")+asked.Header.Get("If-Modified-Since") != "") &&
		!strings.Contains(r.ask2, "If-"):
		got = "validated"
	case asked != nil:
		got = "origin"
	case a.StatusCode == http.StatusGatewayTimeout:
		got = "504"
	}
	if got != wanted[0] {
		t.Errorf("answered by %s, want %s; Cache-Status %q", got, wanted[0], a.cacheStatus())
	}
	for _, want := range wanted[1:] {
		if !holds(a, want) {
			t.Errorf("want %q, got status %d, body %q and %v", want, a.StatusCode, a.body, a.Header)
		}
	}
}

// holds reports whether a response is as wanted.
func holds(a answer, want string) bool {
	if status, err := strconv.Atoi(want); err == nil {
		return a.StatusCode == status
	}
	if body, ok := strings.CutPrefix(want, "body "); ok {
		return a.body == body
	}
	if name, ok := strings.CutPrefix(want, "-"); ok {
		return len(a.Header.Values(name)) == 0
	}
	if i := strings.IndexAny(want, ":~"); want[i] == '~' {
		return strings.Contains(strings.Join(a.Header.Values(want[:i]), ", "), want[i+1:])
	}
	name, value, _ := strings.Cut(want, ":")
	return strings.Join(a.Header.Values(name), ", ") == strings.TrimSpace(value)
}
