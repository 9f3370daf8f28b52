package middleware

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestHiddenFieldsReachNoClientInTrailersAndInformationalResponses(t *testing.T) {
	t.Parallel()
	for name, control := range map[string]string{"stored": "max-age=60", "not stored": "private", "streamed": "no-store"} {
		for path, header := range map[string]string{"/": "X-A: b", "/alone": `If-Match: "x"`} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				p := newPage(func(w http.ResponseWriter, _ *http.Request) {
					w.Header()["cache-tag"] = []string{"a"}
					w.Header().Set("Link", "</a.css>; rel=preload")
					w.WriteHeader(http.StatusEarlyHints)
					w.Header().Set("Cache-Control", control)
					w.Header().Set("Trailer", "X-Kept, Surrogate-Key")
					_, _ = io.WriteString(w, "page")
					w.Header().Set("X-Kept", "yes")
					w.Header().Set("Surrogate-Key", "b")
					w.Header()[http.TrailerPrefix+"cache-Tag"] = []string{"c"}
				})
				f := newFleet(t, 1, Config{HideFields: []string{"Cache-Tag", "Surrogate-Key"}}, p)
				for _, what := range []string{"made", "again"} {
					r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
						Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
							expect.Equal(t, what+": informational", h.Get("Cache-Tag"), "")
							expect.Equal(t, what+": its link", h.Get("Link") == "", false)
							return nil
						},
					}), http.MethodGet, f.urls[0]+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					field, value, _ := strings.Cut(header, ": ")
					r.Header.Set(field, value)
					res, err := f.client.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					body, _ := io.ReadAll(res.Body)
					_ = res.Body.Close()
					expect.Equal(t, what+": body", string(body), "page")
					for _, h := range []http.Header{res.Header, res.Trailer} {
						expect.Equal(t, what+": hidden", h.Get("Cache-Tag")+h.Get("Surrogate-Key"), "")
					}
					expect.Equal(t, what+": kept", res.Trailer.Get("X-Kept"), "yes")
				}
			})
		}
	}
}
