package monitoring

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/metrics"
	"github.com/cacheguard/go/middleware"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/semaphore"
)

// fleet is three instances of a shop with callers, on a Redis and a database that can be troubled.
type fleet struct {
	*testing.T
	server *redistest.Server
	urls   []string // of metrics
	slow   atomic.Bool
	broken atomic.Bool
	jobs   *mutex.Locker // of the last instance
	tasks  sync.WaitGroup
}

type shopped struct {
	guard    *cacheguard.Guard
	products *cacheguard.Cache[int, string]
	site     http.Handler
	jobs     *mutex.Locker
	reports  *semaphore.Locker
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{T: t, server: redistest.Start(t)}
	f.redis("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(func() {
		leave()
		f.tasks.Wait()
	})
	for i := range 3 {
		f.call(ctx, f.instance(fmt.Sprint("shop-", i+1)))
	}
	return f
}

func (f *fleet) redis(args ...any) {
	if err := f.server.Client(f).Do(f.Context(), args...).Err(); err != nil {
		f.Error(err)
	}
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) instance(name string) *shopped {
	rdb := redis.NewClient(&redis.Options{Addr: f.server.Addr(), Username: "app", Password: "secret", DisableIdentity: true, DialerRetries: 1})
	f.Cleanup(func() { _ = rdb.Close() }) // all is done
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{Routes: []string{"/products", "/search"}})
	f.must(err)
	exporter := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	f.Cleanup(exporter.Close)
	f.urls = append(f.urls, exporter.URL)
	limiter, err := semaphore.NewLimiter(rdb, "product-db", semaphore.Config{Prefix: "shop", Instance: name, Permits: 12, TTL: 2 * time.Second, RedisTimeout: redistest.Patience})
	f.must(err)
	f.Cleanup(func() { _ = limiter.Close() }) // always nil; after the Guard's
	s := new(shopped)
	s.guard, err = cacheguard.New(rdb, cacheguard.Config{
		RedisTimeout: redistest.Patience, HedgeAfter: -1,
		Prefix: "shop", Instance: name, TTL: 4 * time.Second, StaleFor: 4 * time.Second, LeaseTTL: 2 * time.Second, MaxLoads: 8, Limiter: limiter,
		MaxValueBytes: 1000, Local: cacheguard.LocalConfig{MaxBytes: 30_000, TTL: time.Second}, Observers: []cacheguard.Observer{m.Guard("shop")},
	})
	f.must(err)
	m.Watch("shop", s.guard)
	s.products, err = cacheguard.NewCache(s.guard, cacheguard.CacheConfig[int, string]{Name: "product", Load: f.load})
	f.must(err)
	cache, err := middleware.New(s.guard, middleware.Config{OnResponse: m.HTTP("pages")})
	f.must(err)
	s.site = cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = r.URL.Path // as a router does
		if r.URL.Path == "/products" {
			w.Header().Set("Cache-Control", "max-age=2")
		}
		_, _ = w.Write([]byte("page")) // nobody reads it
	}))
	s.jobs, err = mutex.New(rdb, mutex.Config{RedisTimeout: redistest.Patience, Prefix: "jobs", Instance: name, Hooks: m.Lock("jobs")})
	f.must(err)
	f.jobs = s.jobs
	s.reports, err = semaphore.New(rdb, semaphore.Config{RedisTimeout: redistest.Patience, Prefix: "jobs", Instance: name, Permits: 2, Hooks: m.Lock("reports")})
	f.must(err)
	f.Cleanup(func() { _ = errors.Join(s.guard.Close(), s.jobs.Close(), s.reports.Close()) }) // always nil
	return s
}

// load is a query of the database.
func (f *fleet) load(ctx context.Context, id int) (string, error) {
	took := time.Duration(5+rand.IntN(30)) * time.Millisecond
	if f.slow.Load() {
		took += 700 * time.Millisecond
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	switch {
	case f.broken.Load() && id%4 == 0:
		return "", errors.New("the table is locked")
	case id%50 == 49:
		return "", cacheguard.ErrNotFound
	case id%50 == 48:
		return strings.Repeat("x", 2000), nil // too long
	}
	return strings.Repeat("x", 300) + fmt.Sprint(id%3), nil
}

// call calls an instance until ctx ends.
func (f *fleet) call(ctx context.Context, s *shopped) {
	every := func(pause time.Duration, do func()) {
		f.tasks.Go(func() { // owner: the fleet; stop: ctx; joined by the test's end
			for ctx.Err() == nil {
				do()
				select {
				case <-time.After(pause/2 + rand.N(pause)):
				case <-ctx.Done():
				}
			}
		})
	}
	for range 12 {
		every(20*time.Millisecond, func() { _, _ = s.products.Get(ctx, int(rand.ExpFloat64()*60)) })
	}
	every(100*time.Millisecond, func() { _ = s.products.Invalidate(ctx, int(rand.ExpFloat64()*60)) })
	every(50*time.Millisecond, func() {
		path := []string{"/products", "/products", "/search"}[rand.IntN(3)]
		s.site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://shop"+path, nil))
	})
	work := func(pause time.Duration) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	every(300*time.Millisecond, func() {
		_ = s.jobs.Do(ctx, "import", func(context.Context, *mutex.Lease) error { work(200 * time.Millisecond); return nil })
	})
	every(time.Second, func() {
		if lease, err := s.jobs.TryLock(ctx, "import"); err == nil {
			_ = lease.Unlock(ctx)
		}
	})
	for range 2 {
		every(300*time.Millisecond, func() {
			_ = s.reports.Do(ctx, "reports", func(context.Context, *semaphore.Lease) error { work(400 * time.Millisecond); return nil })
		})
	}
}
