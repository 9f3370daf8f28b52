package middleware

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Everything in a request either counts, or reaches the handler in one form, or belongs to what stands in front, as doc.go says.

// change makes a request differ from another in one part.
type change func(r *http.Request)

// parts are all parts of a request. Nil: doc.go says why it may differ, or no server sets it.
var parts = map[string]change{
	"Method":           func(r *http.Request) { r.Method = http.MethodHead },
	"Proto":            func(r *http.Request) { r.Proto = "HTTP/1.0" },
	"ProtoMajor":       func(r *http.Request) { r.ProtoMajor = 2 },
	"ProtoMinor":       func(r *http.Request) { r.ProtoMinor = 0 },
	"Header":           nil, // by Vary
	"Body":             func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("evil")) },
	"GetBody":          func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil } },
	"ContentLength":    func(r *http.Request) { r.ContentLength = 1 },
	"TransferEncoding": func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
	"Close":            func(r *http.Request) { r.Close = true },
	"Host":             func(r *http.Request) { r.Host = "SHOP.example.:80" },
	"Form":             func(r *http.Request) { r.Form = url.Values{"a": {"evil"}} },
	"PostForm":         func(r *http.Request) { r.PostForm = url.Values{"a": {"evil"}} },
	"MultipartForm":    func(r *http.Request) { r.MultipartForm = new(multipart.Form) },
	"Trailer":          func(r *http.Request) { r.Trailer = http.Header{"A": nil} },
	"RemoteAddr":       nil,
	"RequestURI":       func(r *http.Request) { r.RequestURI = "/%61" },
	"TLS":              func(r *http.Request) { r.TLS = new(tls.ConnectionState) },
	"Cancel":           func(r *http.Request) { r.Cancel = make(chan struct{}) }, //nolint:staticcheck // a handler may read it
	"Response":         func(r *http.Request) { r.Response = new(http.Response) },
	"Pattern":          nil, // what stands in front: of the URL and the Host, which counts then
	"ctx":              nil,
	"pat":              nil,
	"matches":          nil,
	"otherValues":      nil,

	"URL.Scheme":      func(r *http.Request) { r.URL.Scheme = "https" },
	"URL.Opaque":      func(r *http.Request) { r.URL.Opaque = "a" },
	"URL.User":        func(r *http.Request) { r.URL.User = url.User("evil") },
	"URL.Host":        func(r *http.Request) { r.URL.Host = host },
	"URL.Path":        func(r *http.Request) { r.URL.Path = "/b" },
	"URL.Fragment":    func(r *http.Request) { r.URL.Fragment = "a" },
	"URL.RawQuery":    func(r *http.Request) { r.URL.RawQuery = "a=b" },
	"URL.RawPath":     func(r *http.Request) { r.URL.RawPath = "/%61" },
	"URL.RawFragment": func(r *http.Request) { r.URL.RawFragment = "a" },
	"URL.ForceQuery":  func(r *http.Request) { r.URL.ForceQuery = true },
	"URL.OmitHost":    func(r *http.Request) { r.URL.OmitHost = true },

	"TLS.Version":                     secure(func(s *tls.ConnectionState) { s.Version = tls.VersionTLS10 }),
	"TLS.HandshakeComplete":           secure(func(s *tls.ConnectionState) { s.HandshakeComplete = false }),
	"TLS.DidResume":                   secure(func(s *tls.ConnectionState) { s.DidResume = true }),
	"TLS.CipherSuite":                 secure(func(s *tls.ConnectionState) { s.CipherSuite = 7 }),
	"TLS.CurveID":                     secure(func(s *tls.ConnectionState) { s.CurveID = 7 }),
	"TLS.NegotiatedProtocol":          secure(func(s *tls.ConnectionState) { s.NegotiatedProtocol = "h2" }),
	"TLS.NegotiatedProtocolIsMutual":  secure(func(s *tls.ConnectionState) { s.NegotiatedProtocolIsMutual = false }), //nolint:staticcheck // handlers may read it
	"TLS.ServerName":                  secure(func(s *tls.ConnectionState) { s.ServerName = "evil" }),
	"TLS.PeerCertificates":            secure(func(s *tls.ConnectionState) { s.PeerCertificates = []*x509.Certificate{{Raw: []byte("a")}} }),
	"TLS.VerifiedChains":              nil, // of PeerCertificates
	"TLS.SignedCertificateTimestamps": secure(func(s *tls.ConnectionState) { s.SignedCertificateTimestamps = [][]byte{{1}} }),
	"TLS.OCSPResponse":                secure(func(s *tls.ConnectionState) { s.OCSPResponse = []byte{1} }),
	"TLS.TLSUnique":                   secure(func(s *tls.ConnectionState) { s.TLSUnique = []byte{1} }),
	"TLS.ECHAccepted":                 secure(func(s *tls.ConnectionState) { s.ECHAccepted = true }),
	"TLS.HelloRetryRequest":           secure(helloAgain),
}

// helloAgain sets what Go tells since 1.26.
func helloAgain(s *tls.ConnectionState) {
	if f := reflect.ValueOf(s).Elem().FieldByName("HelloRetryRequest"); f.IsValid() {
		f.SetBool(true)
	}
}

func secure(with func(*tls.ConnectionState)) change {
	return func(r *http.Request) { r.TLS = new(tls.ConnectionState); with(r.TLS) }
}

// fields are the fields of a struct.
func fields(of any, prefix string) (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
		names = append(names, prefix+field.Name)
	}
	return names
}

// partsOf is what a handler can read of a request, part by part.
func partsOf(r *http.Request) map[string]string {
	all := make(map[string]string)
	for prefix, of := range map[string]any{"": r, "URL.": r.URL, "TLS.": r.TLS} {
		v := reflect.ValueOf(of)
		if v.IsNil() {
			all[prefix] = "none"
			continue
		}
		for i, name := range fields(v.Elem().Interface(), prefix) {
			if field := v.Elem().Field(i); field.CanInterface() && name != "URL" && name != "TLS" {
				all[name] = fmt.Sprintf("%T %v", field.Interface(), field.Interface())
			}
		}
	}
	return all
}

func TestEveryPartOfARequestCountsOrReachesTheHandlerInOneForm(t *testing.T) {
	t.Parallel()
	guard := unasked(t)
	known := make(map[string]bool)
	for _, name := range append(append(fields(http.Request{}, ""), fields(url.URL{}, "URL.")...), fields(tls.ConnectionState{}, "TLS.")...) {
		known[name] = true
		differ, decided := parts[name]
		if last := name[strings.LastIndexByte(name, '.')+1:]; name == "URL" || strings.HasPrefix(name, "TLS.") && last[0] >= 'a' {
			continue // what only package tls reads is of the connection
		}
		if !decided {
			t.Errorf("nobody has decided what becomes of %s", name)
			continue
		}
		if differ == nil {
			continue
		}
		one, other := asked(t, "/a", strings.HasPrefix(name, "TLS.")), asked(t, "/a", false)
		differ(other)
		keyOne, handedOne, ok := honest(guard, Config{}, nil, one)
		expect.Equal(t, "it is answered from the cache", ok, true)
		keyOther, handedOther, ok := honest(guard, Config{}, nil, other)
		if !ok || keyOne != keyOther {
			continue
		}
		a, b := partsOf(handedOne), partsOf(handedOther)
		for part, text := range a {
			if text != b[part] && parts[part] != nil {
				t.Errorf("%s does not count, and %s is %s or %s", name, part, text, b[part])
			}
		}
	}
	for name := range parts {
		if !known[name] && !strings.HasPrefix(name, "TLS.") { // which differ from one Go to another
			t.Errorf("there is no %s", name)
		}
	}
}

// A client that speaks HTTP/1.0 chooses nobody's page.
func TestTheProtocolOfAClientReachesNoHandler(t *testing.T) {
	t.Parallel()
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		says(fmt.Sprint(r.Proto, r.ProtoAtLeast(1, 1)), fresh)(w, r)
	})
	f := newFleet(t, 1, Config{}, p)
	expect.Equal(t, "the first", f.raw(t, "GET / HTTP/1.0").body, "HTTP/1.1true")
	f.stored()
	expect.Equal(t, "the others", f.get("/").body, "HTTP/1.1true")
	expect.Equal(t, "calls", p.calls.Load(), 1)
}

// A client with a certificate may get a page of its own.
func TestACertificateTellsPagesApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, Config{}, http.NotFoundHandler())
	p := newPage(func(w http.ResponseWriter, r *http.Request) {
		body := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			body = string(r.TLS.PeerCertificates[0].Raw)
		}
		says(body, fresh)(w, r)
	})
	h := f.caches[0].Handler(p)
	for range 2 {
		for _, who := range []string{"a", "b", ""} {
			r, w := asked(t, "/", true), httptest.NewRecorder()
			if who != "" {
				r.TLS.PeerCertificates = []*x509.Certificate{{Raw: []byte(who)}}
			}
			h.ServeHTTP(w, r)
			f.stored()
			expect.Equal(t, "its page", w.Body.String(), map[string]string{"a": "a", "b": "b", "": "nobody"}[who])
		}
	}
	expect.Equal(t, "calls", p.calls.Load(), 3)
}
