package middleware

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// RFC 9111 sections 5.2.2.4 and 5.2.2.7 restrict storing and reusing the field, not sending it to the client that caused it.
func TestAnUnstorableFieldReachesTheClientThatCausedIt(t *testing.T) {
	t.Parallel()
	for _, directive := range []string{`no-cache="Set-Cookie"`, `private="Set-Cookie"`} {
		t.Run(directive, func(t *testing.T) {
			t.Parallel()
			p := newPage(says("page", "Cache-Control: max-age=60, "+directive, "Set-Cookie: session=1"))
			f := newFleet(t, 1, Config{}, p)
			expect.Equal(t, "the client that caused it", f.get("/").Header.Get("Set-Cookie"), "session=1")
			expect.Equal(t, "another", f.get("/").Header.Get("Set-Cookie"), "")
			expect.Equal(t, "calls", p.calls.Load(), 1)
		})
	}
}

// proxied is a cache with ReverseProxy behind it, and an origin that allows the Origin of the request to read its answer.
func proxied(t *testing.T) *fleet {
	return newFleet(t, 1, Config{}, proxy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		_, _ = io.WriteString(w, "page")
	})))
}

// A proxy drops the fields that Connection names, so the response is not the one for the value that was sent.
func TestAFieldThatConnectionNamesDoesNotSelect(t *testing.T) {
	t.Parallel()
	f := proxied(t)
	const ours = "https://shop.example"
	f.raw(t, "GET / HTTP/1.1", "Origin: "+ours, "Connection: close, Origin")
	for range 2 {
		expect.Equal(t, "the origin that may read it", f.get("/", "Origin: "+ours).Header.Get("Access-Control-Allow-Origin"), ours)
	}
}

func TestForwardedTellsPagesApartByTheRequestAndNotByTheClient(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		says(r.Header.Get("Forwarded"), fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	f.get("/", "Forwarded: for=192.0.2.1;host=a;proto=https")
	f.get("/", `Forwarded: For="[2001:db8::1]:80"; HOST=a;proto=https;by=10.0.0.1`)
	expect.Equal(t, "calls for two clients", p.calls.Load(), 1)
	f.get("/", "Forwarded: for=192.0.2.1")
	f.get("/")
	expect.Equal(t, "calls for a client whose proxy names only itself", p.calls.Load(), 2)
	for i, other := range [][2]string{ // sent, and seen by the handler
		{"for=192.0.2.1;host=b;proto=https", "host=b;proto=https"}, {"for=192.0.2.1;host=a;proto=http", "host=a;proto=http"},
		{`for="x;host=a";proto=https`, `for="x;host=a";proto=https`}, {`for="x,host=a"`, `for="x,host=a"`},
		{"for=192.0.2.1, host=a;proto=https", ",host=a;proto=https"}, {"host=a", "host=a"},
		{`for="a\";host=a;proto=https"`, `for="a\";host=a;proto=https"`}, {"secret=1", "secret=1"}, {`host="a,b";by=c`, `host="a,b"`},
	} {
		calls := p.calls.Load()
		expect.Equal(t, other[0], f.get("/", "Forwarded: "+other[0]).body, other[1])
		if p.calls.Load() != calls+1 {
			t.Errorf("%d: %q is no page of its own", i, other[0])
		}
	}
}

func TestASuppressedContentTypeIsNotGuessed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "<html>")
	}))
	for range 2 {
		expect.Equal(t, "Content-Type", len(f.get("/").Header.Values("Content-Type")), 0)
	}
}

func TestFieldsThatTellPagesApartCanBeNamed(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh))
	f := newFleet(t, 1, Config{KeyFields: []string{"x-tenant"}, NotKeyFields: []string{"x-forwarded-port"}}, p)
	for range 2 {
		f.get("/", "X-Tenant: a")
		f.get("/", "X-Tenant: b", "X-Forwarded-Port: 80")
		f.get("/", "X-Tenant: b", "X-Forwarded-Port: 81")
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

func TestAResponseWithAFieldThatNoRecordCanHaveIsNotStored(t *testing.T) {
	t.Parallel()
	for _, field := range [][2]string{{"X-A", "a\r\nX-B: c"}, {"X-A", "a\nb"}, {"X-A", "a\rb"}, {"X A", "b"}, {"", "b"}} {
		p := newPage(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header()[field[0]] = []string{field[1]}
			_, _ = io.WriteString(w, "page")
		})
		f := newFleet(t, 1, Config{}, p)
		for i := range 2 {
			a := f.get("/")
			expect.Equal(t, "body", a.body, "page")
			want := "cacheguard; fwd=uri-miss; fwd-status=200; detail=field"
			if i > 0 {
				want = "cacheguard; fwd=uri-miss; detail=field" // it passes through
			}
			expect.Equal(t, "Cache-Status", a.cacheStatus(), want)
		}
	}
}

func TestA304WithAFieldThatNoRecordCanHaveReachesItsClientOnly(t *testing.T) {
	t.Parallel()
	p := newPage(stalePage)
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	p.serve = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-A", "a\r\nb")
		says("page", fresh)(w, r)
	}
	expect.Equal(t, "Cache-Status", f.get("/").cacheStatus(), "cacheguard; fwd=stale; fwd-status=200; detail=field")
}

// Clients choose the length of their fields. A long one is compared as it is, and not taken apart.
func TestALongFieldTellsPagesApartAsItIs(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		says(r.Header.Get("Accept")[:1], fresh, "Vary: Accept")(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	long := strings.Repeat(",b", 100_000)
	for range 2 {
		expect.Equal(t, "a", f.get("/", "Accept: a"+long).body, "a")
		expect.Equal(t, "c", f.get("/", "Accept: c"+long).body, "c")
	}
	expect.Equal(t, "calls", p.calls.Load(), 2)
}

func TestARequestWithALongConnectionOrHostPasses(t *testing.T) {
	t.Parallel()
	for line, why := range map[string]string{
		"Connection: close" + strings.Repeat(",x", 100_000): "", "Host: " + strings.Repeat("x", 100_000): "; detail=limit",
	} {
		p := newPage(says("page", fresh))
		f := newFleet(t, 1, Config{}, p)
		for range 2 {
			expect.Equal(t, "Cache-Status", f.get("/", line).cacheStatus(), "cacheguard; fwd=bypass"+why)
		}
	}
}

func TestALongConditionOrRangeIsIgnored(t *testing.T) {
	t.Parallel()
	p := newPage(says("page", fresh, `ETag: "a"`))
	f := newFleet(t, 1, Config{}, p)
	f.warm("/")
	for _, line := range []string{`If-None-Match: "a"` + strings.Repeat(`,"b"`, 100_000), "Range: bytes=0-0" + strings.Repeat(",0-0", 100_000)} {
		a := f.get("/", line)
		expect.Equal(t, "status", a.StatusCode, http.StatusOK)
		expect.Equal(t, "body", a.body, "page")
	}
	expect.Equal(t, "calls", p.calls.Load(), 1)
}
