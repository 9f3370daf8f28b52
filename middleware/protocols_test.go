package middleware

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// The cache's answers must not depend on the protocol.
func TestHTTP1AndHTTP2AndH2CAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	var want []string
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0", "HTTP/2.0 without TLS"} {
		if got := transcript(t, protocol); want == nil {
			want = got
		} else {
			for i := range want {
				expect.Equal(t, protocol, got[i], want[i])
			}
		}
	}
}

// transcript is the cache's answers to a client over one connection.
func transcript(t *testing.T, protocol string) (answers []string) {
	f := newFleet(t, 1, Config{MaxBody: 1000}, http.NotFoundHandler())
	server := httptest.NewUnstartedServer(f.caches[0].Handler(http.HandlerFunc(various)))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "HTTP/1.1")
	protocols.SetHTTP2(protocol == "HTTP/2.0")
	protocols.SetUnencryptedHTTP2(protocol == "HTTP/2.0 without TLS")
	server.Config.Protocols = protocols
	if protocol == "HTTP/2.0" {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	transport := &http.Transport{
		Protocols: protocols, DisableCompression: true, MaxConnsPerHost: 1,
		TLSClientConfig: &tls.Config{RootCAs: rootsOf(server)},
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	for _, ask := range []string{
		"GET /page", "GET /page", "HEAD /page", "GET /page|Range: bytes=1-2", `GET /page|If-None-Match: "a"`, "POST /page", "GET /page",
		"HEAD /first", "GET /first", "GET /vary|X-A: 1", "GET /vary|X-A: 2", "GET /vary|X-A: 1", "GET /private", "GET /private",
		"GET /large", "HEAD /large", "GET /large|Range: bytes=1-2", "GET /trailer", "GET /trailer", "GET /none", "GET /none",
		"GET /missing", "GET /missing", "OPTIONS /page", "GET /page|Cache-Control: only-if-cached", "GET /other|Cache-Control: only-if-cached",
		"GET /cut", "GET /page",
	} {
		answers = append(answers, ask+" -> "+exchanged(t, client, server.URL, ask, protocol[:len("HTTP/1.1")]))
	}
	return answers
}

func rootsOf(server *httptest.Server) *x509.CertPool {
	if server.Certificate() == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// exchanged sends one request, and returns the answer's important parts.
func exchanged(t *testing.T, client *http.Client, base, ask, protocol string) string {
	t.Helper()
	parts := strings.Split(ask, "|")
	method, path, _ := strings.Cut(parts[0], " ")
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range parts[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	res, err := client.Do(r)
	if err != nil {
		return "broken off"
	}
	defer res.Body.Close()
	expect.Equal(t, "protocol", res.Proto, protocol)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "broken off"
	}
	status, _, _ := strings.Cut(res.Header.Get("Cache-Status"), "; ttl=")
	return fmt.Sprintf("%d %d %q %s %s %s %s", res.StatusCode, len(body), string(body[:min(len(body), 20)]), status,
		res.Header.Get("Content-Range"), res.Header.Get("Cache-Control"), res.Trailer.Get("X-Sum"))
}

// various answers each path in a way of its own.
func various(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	w.Header().Set("Etag", `"a"`)
	body := r.Method + " " + r.URL.Path
	switch r.URL.Path {
	case "/vary":
		w.Header().Set("Vary", "X-A")
		body += r.Header.Get("X-A")
	case "/private":
		w.Header().Set("Cache-Control", "private")
	case "/large":
		http.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(strings.Repeat("x", 5000)))
		return
	case "/trailer":
		w.Header().Set("Trailer", "X-Sum")
		defer w.Header().Set("X-Sum", "42")
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/missing":
		w.WriteHeader(http.StatusNotFound)
	case "/cut":
		w.Header().Set("Content-Length", "100")
	}
	_, _ = io.WriteString(w, body) // a client that has left
}
