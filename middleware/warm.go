package middleware

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/cacheguard/go/middleware/internal/canonical"
)

// Warm asks the handler for pages that are missing or stale, and stores them: after a deployment, or before a sale. It returns how many of
// the URLs have a page in the cache, and an error that names the first of the others. It asks for four at a time; their loads count
// towards the Guard's MaxLoads, whatever LimitLoads says, and not against Limits. When ctx ends, it stops.
//
// The handler is what Handler was given. It may also be the whole service, with the Cache in it, if what stands in front of the Cache lets
// such requests pass and changes nothing of them. URLs are whole, as clients know them; header has the fields that select the variant, and
// what a proxy in front sets: Accept-Encoding, X-Forwarded-Proto. Without a field of the latter kind, an https URL is asked for as
// over TLS.
func (c *Cache) Warm(ctx context.Context, handler http.Handler, urls iter.Seq[string], header http.Header) (stored int, err error) {
	const atOnce = 4
	var (
		slots = make(chan struct{}, atOnce)
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error // guarded by mu, as is stored
	)
	c.warms.Store(true)
	ctx = context.WithValue(ctx, warmed{c}, true)
	for u := range urls {
		if slots <- struct{}{}; ctx.Err() != nil {
			break
		}
		group.Go(func() { // owner: Warm; stop: the page is there, or ctx; joined by Wait
			err := c.warm(ctx, handler, u, header)
			mu.Lock()
			if err == nil {
				stored++
			} else if len(errs) < maxWarmErrors {
				errs = append(errs, err)
			}
			mu.Unlock()
			<-slots
		})
	}
	group.Wait()
	return stored, errors.Join(append(errs, ctx.Err())...)
}

// maxWarmErrors bounds what the error of Warm names.
const maxWarmErrors = 10

// warm asks for one page.
func (c *Cache) warm(ctx context.Context, handler http.Handler, url string, header http.Header) (err error) {
	r, err := received(ctx, url, header)
	if err != nil {
		return fmt.Errorf("middleware: warm %q: %w", url, err)
	}
	w := &unread{header: make(http.Header)}
	x := &exchange{request: request{cache: c, r: r, next: handler, warming: true}, w: w}
	defer func() {
		if p := recover(); p != nil {
			if _, known := p.(*PanicError); !known && p != http.ErrAbortHandler { //nolint:errorlint // this very error
				p = &PanicError{Value: p, Stack: debug.Stack()}
			}
			err = fmt.Errorf("middleware: warm %q: the handler panicked: %v", url, p)
		}
	}()
	x.serve()
	switch x.res.Result {
	case Hit, Stale, Faulty, Loaded, Shared:
		return nil
	}
	return fmt.Errorf("middleware: warm %q: %s, status %d, Cache-Status %q", url, x.res.Result, x.res.Status, w.header.Get("Cache-Status"))
}

// received is a request for a page as a server receives it.
func received(ctx context.Context, page string, header http.Header) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, canonical.AsSent(page), nil)
	if err != nil {
		return nil, err
	}
	if r.Host == "" || r.URL.User != nil {
		return nil, errors.New("it names no host, or a user")
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if r.URL.Scheme == "https" && r.Header.Get("X-Forwarded-Proto")+r.Header.Get("Forwarded") == "" {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true, ServerName: r.URL.Hostname()}
	}
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:0"
	r.URL, err = url.ParseRequestURI(r.RequestURI)
	return r, err
}

// unread is the http.ResponseWriter of a response that nobody reads.
type unread struct{ header http.Header }

func (w *unread) Header() http.Header { return w.header }

func (w *unread) WriteHeader(int) {}

func (w *unread) Write(b []byte) (int, error) { return len(b), nil }

// maxSitemap is the size of the largest sitemap, as sitemaps.org has it.
const maxSitemap = 50 << 20

// Sitemap returns the URLs of a sitemap (sitemaps.org), for Warm. An index of sitemaps is an error: its sitemaps have to be fetched first.
func Sitemap(sitemap io.Reader) ([]string, error) {
	var set struct {
		XMLName xml.Name `xml:"urlset"`
		URLs    []struct {
			Loc string `xml:"loc"`
		} `xml:"url"`
	}
	if err := xml.NewDecoder(io.LimitReader(sitemap, maxSitemap)).Decode(&set); err != nil {
		return nil, fmt.Errorf("middleware: sitemap: %w", err)
	}
	urls := make([]string, len(set.URLs))
	for i, u := range set.URLs {
		urls[i] = strings.TrimSpace(u.Loc)
	}
	return urls, nil
}
