package middleware

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The fuzz test sends two requests for one URL and lets the handler answer the first with some fields. The table of what RFC 9111 forbids
// then says whether the second may be answered without asking the handler. It shares no code with the cache.
var (
	askLines = []string{
		"Authorization: a", "Authorization: b", "Cookie: a=b", "Cache-Control: no-store", "Cache-Control: no-cache",
		"Cache-Control: max-age=0", "Cache-Control: max-age=600", "Cache-Control: max-stale", "Cache-Control: min-fresh=600", "X-A: 1",
		"X-A: 2", "Accept-Language: de", "Connection: X-A", "X-Forwarded-Host: evil", "If-Match: \"a\"", "Upgrade: websocket",
		"Content-Type: text/plain", "Pragma: no-cache", "Forwarded: host=evil",
	}
	replyLines = []string{
		"Cache-Control: max-age=60", "Cache-Control: s-maxage=60", "Cache-Control: max-age=0", "Cache-Control: no-store",
		"Cache-Control: private", "Cache-Control: no-cache", "Cache-Control: must-revalidate", "Cache-Control: proxy-revalidate",
		"Cache-Control: public", "Cache-Control: stale-while-revalidate=600", "Cache-Control: max-age=x", "Vary: X-A",
		"Vary: *", "Vary: Accept-Language", "Set-Cookie: a=b", "Age: 70", `ETag: "a"`, "Expires: 0",
		"Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT", "X-B: 1",
	}
)

// lines are fields, as they are in askLines and replyLines.
type lines []string

func (l lines) has(wanted ...string) bool {
	return slices.ContainsFunc(wanted, func(s string) bool { return slices.Contains(l, s) })
}

// of returns the values of a field.
func (l lines) of(name string) (values string) {
	for _, line := range l {
		if strings.HasPrefix(line, name+": ") {
			values += line + "|"
		}
	}
	return values
}

// forbidden is the table: when a stored response must not answer a second request without asking the handler.
var forbidden = []struct {
	rule string
	when func(ask1, reply, ask2 lines) bool
}{
	{"3: no-store in the request", func(ask1, _, _ lines) bool { return ask1.has("Cache-Control: no-store") }},
	{"3: no-store in the response", func(_, reply, _ lines) bool { return reply.has("Cache-Control: no-store") }},
	{"3: private", func(_, reply, _ lines) bool { return reply.has("Cache-Control: private") }},
	{"3.5: Authorization", func(ask1, reply, _ lines) bool {
		return ask1.of("Authorization") != "" &&
			!reply.has("Cache-Control: public", "Cache-Control: s-maxage=60", "Cache-Control: must-revalidate")
	}},
	{"4: what does not say that it is fresh", func(_, reply, _ lines) bool {
		return !reply.has("Cache-Control: max-age=60", "Cache-Control: s-maxage=60", "Cache-Control: stale-while-revalidate=600") &&
			!reply.has("Cache-Control: max-age=0") // stale, and perhaps asked for
	}},
	{"4: what is stale, and nobody allows it", func(_, reply, ask2 lines) bool {
		stale := reply.has("Age: 70") || reply.has("Cache-Control: max-age=0") && !reply.has("Cache-Control: s-maxage=60", "Cache-Control: max-age=60")
		return stale && !ask2.has("Cache-Control: max-stale") && !reply.has("Cache-Control: stale-while-revalidate=600")
	}},
	{"4.2.1: what cannot be read", func(_, reply, _ lines) bool { return reply.has("Cache-Control: max-age=x") }},
	{"4.2.4: must-revalidate, and s-maxage", func(_, reply, _ lines) bool {
		return reply.has("Age: 70") && reply.has("Cache-Control: must-revalidate", "Cache-Control: proxy-revalidate")
	}},
	{"4.1: Vary", func(ask1, reply, ask2 lines) bool {
		return reply.has("Vary: *") || reply.has("Vary: X-A") && ask1.of("X-A") != ask2.of("X-A") ||
			reply.has("Vary: Accept-Language") && ask1.of("Accept-Language") != ask2.of("Accept-Language")
	}},
	{"5.2.1.4: no-cache in the request", func(_, _, ask2 lines) bool { return ask2.has("Cache-Control: no-cache") }},
	{"5.2.1.5: no-store in the second request", func(_, _, ask2 lines) bool { return ask2.has("Cache-Control: no-store") }},
	{"5.2.1.1: max-age in the request", func(_, _, ask2 lines) bool {
		return ask2.has("Cache-Control: max-age=0") && !ask2.has("Cache-Control: max-stale")
	}},
	{"5.2.1.3: min-fresh", func(_, _, ask2 lines) bool { return ask2.has("Cache-Control: min-fresh=600") }},
	{"5.2.2.4: no-cache in the response", func(_, reply, _ lines) bool { return reply.has("Cache-Control: no-cache") }},
	{"4.3.2: conditions for the origin alone", func(_, _, ask2 lines) bool { return ask2.has(`If-Match: "a"`) }},
	{"an upgrade", func(_, _, ask2 lines) bool { return ask2.has("Upgrade: websocket") }},
	{"a cookie for one user", func(_, reply, _ lines) bool { return reply.has("Set-Cookie: a=b") }},
	{"fields that frameworks believe", func(ask1, _, ask2 lines) bool {
		return ask1.of("X-Forwarded-Host") != ask2.of("X-Forwarded-Host") || ask1.of("Forwarded") != ask2.of("Forwarded")
	}},
	{"fields that proxies drop", func(ask1, reply, ask2 lines) bool {
		return reply.has("Vary: X-A") && (ask1.has("Connection: X-A") && ask1.of("X-A") != "" || ask2.has("Connection: X-A") && ask2.of("X-A") != "")
	}},
}

// picked are the lines whose bits are set.
func picked(all []string, bits uint32) (list lines) {
	for i, line := range all {
		if bits>>i&1 > 0 {
			list = append(list, line)
		}
	}
	return list
}

func FuzzNothingIsReusedThatRFC9111Forbids(f *testing.F) {
	f.Add(uint32(0), uint32(1), uint32(0))
	f.Add(uint32(1), uint32(1|1<<8), uint32(0))
	f.Add(uint32(1<<9), uint32(1|1<<11), uint32(1<<10))
	f.Add(uint32(0), uint32(1|1<<15), uint32(1<<7))
	f.Add(uint32(1<<2), uint32(1|1<<16), uint32(1<<2))
	for i := range len(replyLines) {
		f.Add(uint32(0), uint32(1|1<<i), uint32(1<<(i%len(askLines))))
	}
	cache := newCache(f, Config{})
	for _, found := range [][3]uint32{
		{48, 4065, 4081}, {3, 32355, 0}, {0, 65, 50}, {512, 2057, 1024}, {0, 1085, 1108}, {0, 65, 145}, {20, 559, 527},
		{0, 0, 1}, {47, 16363, 16384}, {16, 4008, 3983}, {157, 32756, 32672}, {0, 32659, 0},
	} {
		f.Add(found[0], found[1], found[2])
	}
	f.Fuzz(func(t *testing.T, bits1, replyBits, bits2 uint32) {
		compare(t, cache, picked(askLines, bits1), picked(replyLines, replyBits), picked(askLines, bits2))
	})
}

// The same with a some hundred combinations of two or three lines each, in every run.
func TestNothingIsReusedThatRFC9111Forbids(t *testing.T) {
	t.Parallel()
	cache := newCache(t, Config{})
	bits := func(n int) (b uint32) {
		for range mathrand.IntN(4) {
			b |= 1 << mathrand.IntN(n)
		}
		return b
	}
	for range expect.Samples(300, 2000) {
		compare(t, cache, picked(askLines, bits(len(askLines))), picked(replyLines, 1|bits(len(replyLines))), picked(askLines, bits(len(askLines))))
	}
}

// newCache is a cache without a server.
func newCache(t testing.TB, cfg Config) *Cache {
	t.Helper()
	guard, err := cacheguard.New(shared.Client(t), cacheguard.Config{RedisTimeout: redistest.Patience, HedgeAfter: -1, Prefix: "test-" + rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() }) // always nil
	cache, err := New(guard, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// compare sends both requests through the cache and checks what came of them against the table and the bare handler.
func compare(t *testing.T, cache *Cache, ask1, reply, ask2 lines) {
	t.Helper()
	calls := make(chan string, 10) // the handler's, by what they answered
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := rand.Text()
		calls <- body
		says(body, reply...)(w, r)
	})
	path := "/" + rand.Text()
	send := func(h http.Handler, ask lines) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for _, line := range ask {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Add(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	first := send(cache.Handler(bare), ask1).Body.String()
	if made := <-calls; made != first {
		t.Fatalf("the first answer is not the handler's")
	}
	second := send(cache.Handler(bare), ask2)
	reused := second.Body.String() == first
	if !reused && second.Body.String() != <-calls {
		t.Fatal("the second answer is neither the first nor the handler's")
	}
	var against []string
	for _, row := range forbidden {
		if row.when(ask1, reply, ask2) {
			against = append(against, row.rule)
		}
	}
	if reused && len(against) > 0 {
		t.Errorf("reused against %q: first %q, reply %q, second %q", against, ask1, reply, ask2)
	}
	if plain := len(ask1)+len(ask2) == 0 && reply.has("Cache-Control: max-age=60"); plain && len(against) == 0 && !reused {
		contradicts := reply.has("Cache-Control: max-age=0") // two lifetimes: either may be believed
		if !contradicts {
			t.Errorf("not reused: %q, %s", reply, second.Header().Get("Cache-Status"))
		}
	}
	if want := send(bare, ask2); want.Code != second.Code {
		t.Errorf("status %d, from the bare handler %d", second.Code, want.Code)
	}
}
