package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// BenchmarkHTTPStampede has 8 instances with 128 requests each ask at once for a page that has expired.
func BenchmarkHTTPStampede(b *testing.B) {
	for _, p := range []pages{guardPages, localPages, handPages, rivalPages} {
		b.Run(p.name, func(b *testing.B) { httpStampede(b, p) })
	}
}

func httpStampede(b *testing.B, p pages) {
	const batch, freshFor = 20, time.Second // pages that expire together
	o, fleet := newOrigin(freshFor), "http:"+rand.Text()
	var askers []http.Handler
	for range instances {
		askers = append(askers, slices.Repeat([]http.Handler{p.open(b, fleet, o.ServeHTTP, freshFor)}, callers)...)
	}
	var calls, p50, p99 []float64
	fill := func(from int) {
		o.takes = 0
		for page := from; page < from+batch; page++ {
			for i := 0; i < len(askers); i += callers {
				if err := serve(askers[i], pageRequest(b.Context(), page)); err != nil {
					b.Fatal(err)
				}
			}
		}
		time.Sleep(freshFor + 100*time.Millisecond) // for this is what is measured: that they have expired
		o.takes = rebuild
	}
	crowd := func(page int) {
		o.calls.Store(0)
		o.made.Store(0)
		o.began = time.Now()
		waits := make([]time.Duration, len(askers))
		err := scenario.Together(b.Context(), len(askers), func(ctx context.Context, i int) error {
			err := serve(askers[i], pageRequest(ctx, page))
			waits[i] = time.Since(o.began)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		for i := range waits {
			waits[i] = max(waits[i]-time.Duration(o.made.Load()), 0)
		}
		slices.Sort(waits)
		calls = append(calls, float64(o.calls.Load()))
		p50, p99 = append(p50, millis(percentile(waits, 50))), append(p99, millis(percentile(waits, 99)))
	}
	page := 0
	next := func() {
		if page%batch == 0 {
			fill(page)
		}
		crowd(page)
		page++
	}
	for range 5 { // connections, scripts and subscriptions
		next()
	}
	calls, p50, p99 = nil, nil, nil
	for b.Loop() {
		next()
	}
	b.ReportMetric(0, "ns/op") // mostly the expiry
	b.ReportMetric(mean(calls), "calls/stampede")
	b.ReportMetric(median(p50), "p50-ms")
	b.ReportMetric(median(p99), "p99-ms")
}

// hitPages is an instance that has its page.
func hitPages(b *testing.B, p pages) http.Handler {
	b.Helper()
	h := p.open(b, "http:"+rand.Text(), newOrigin(ttl).ServeHTTP, ttl)
	err := scenario.Together(b.Context(), readers, func(ctx context.Context, _ int) error { return serve(h, pageRequest(ctx, 1)) })
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// BenchmarkHTTPHit has 64 callers of one instance ask for a page that is there.
func BenchmarkHTTPHit(b *testing.B) {
	for _, p := range cachedPages {
		b.Run(p.name, func(b *testing.B) {
			h := hitPages(b, p)
			eachReader(b, func(ctx context.Context) func() error {
				request := pageRequest(ctx, 1)
				return func() error { return serve(h, request) }
			})
		})
	}
}

// BenchmarkHTTPServerHit is the same through a server, connections and a client of net/http.
func BenchmarkHTTPServerHit(b *testing.B) {
	for _, p := range append([]pages{barePages}, cachedPages...) {
		b.Run(p.name, func(b *testing.B) {
			server := httptest.NewServer(hitPages(b, p))
			defer server.Close()
			transport := &http.Transport{MaxIdleConnsPerHost: readers}
			defer transport.CloseIdleConnections()
			eachReader(b, func(ctx context.Context) func() error {
				return func() error { return download(ctx, transport, server.URL+"/pages/1") }
			})
		})
	}
}

func download(ctx context.Context, by http.RoundTripper, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := by.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || n != valueSize) {
		err = fmt.Errorf("%s, %d bytes", response.Status, n)
	}
	return err
}

// eachReader has 64 readers do what each of them is given.
func eachReader(b *testing.B, reader func(context.Context) func() error) {
	b.Helper()
	b.SetParallelism(readers / 2) // on two cores
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		ask := reader(ctx)
		for pb.Next() {
			if err := ask(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkHTTPOverhead has one caller ask for a page that is there: what the middleware adds to a bare handler.
func BenchmarkHTTPOverhead(b *testing.B) {
	for _, p := range []pages{barePages, localPages, rivalPages} {
		b.Run(p.name, func(b *testing.B) {
			h, request := hitPages(b, p), pageRequest(b.Context(), 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := serve(h, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
