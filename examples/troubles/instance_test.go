package troubles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/postgres"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/metrics"
	"github.com/cacheguard/go/mutex"
)

// The settings of the fleet.
const (
	lease    = 3 * time.Second // for machines that stand still for a second
	timeout  = 2 * time.Second // as above
	slow     = 50 * time.Millisecond
	maxLoads = 2

	updateTimeout = 20 * time.Second
)

func TestInstanceOfTheFleet(t *testing.T) {
	if redistest.IsChild(t) {
		newInstance(t).serve()
	}
}

// instance is a process of a service: it does what it is asked for over HTTP, and shows its log, its metrics and the page.
type instance struct {
	*testing.T

	guard   *cacheguard.Guard
	locks   *mutex.Locker
	metrics *prometheus.Registry
	log     page
	feed    *postgres.Feed // nil: the service has none
	release chan struct{}  // closed: loaders that are held go on
	writes  atomic.Int64   // to the source
	once    sync.Once
	tasks   sync.WaitGroup
}

// page is what was logged.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(line)
}

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = w.Write(p.text.Bytes()) // the test asks again
}

func newInstance(t *testing.T) *instance {
	in := &instance{T: t, metrics: prometheus.NewRegistry(), release: make(chan struct{})}
	name := os.Getenv("INSTANCE")
	rdb := redis.NewClient(&redis.Options{
		Addr: os.Getenv("ADDR"), Username: "app", Password: "secret", DisableIdentity: true, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() }) // all is done
	m, err := metrics.New(in.metrics, metrics.Config{})
	in.must(err)
	in.guard, err = cacheguard.New(rdb, cacheguard.Config{
		Prefix: "shop", Instance: name, LeaseTTL: lease, SlowLoad: slow, MaxLoads: maxLoads, RedisTimeout: timeout, Observers: []cacheguard.Observer{m.Guard("shop")}, UpdateTimeout: updateTimeout,
		Local: cacheguard.LocalConfig{MaxEntries: 100}, Logger: slog.New(slog.NewTextHandler(&in.log, nil)),
	})
	in.must(err)
	m.Watch("shop", in.guard)
	in.locks, err = mutex.New(rdb, mutex.Config{Prefix: "jobs", Instance: name, TTL: 2 * lease, RedisTimeout: timeout, Hooks: m.Lock("jobs")})
	in.must(err)
	in.openFeed(m)
	return in
}

// openFeed runs a feed, if the service has a database.
func (in *instance) openFeed(m *metrics.Metrics) {
	address := os.Getenv("DATABASE")
	if address == "" {
		return
	}
	products, err := cacheguard.NewCache(in.guard, cacheguard.CacheConfig[int64, string]{
		Name: "product", Load: func(context.Context, int64) (string, error) { return "value", nil },
	})
	in.must(err)
	in.feed, err = postgres.New(postgres.Config{
		Conn: address, Publication: "shop", Slot: "shop_cache", Guards: []*cacheguard.Guard{in.guard}, Logger: slog.New(slog.NewTextHandler(&in.log, nil)),
		Tables: []cdc.Table{cdc.Rows("public.products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") })},
	})
	in.must(err)
	m.Feed("shop", in.feed.Stats)
	in.tasks.Go(func() { _ = in.feed.Run(context.Background()) }) // owner: the process; stop: its end
}

func (in *instance) must(err error) {
	if err != nil {
		in.Fatal(err)
	}
}

// serve serves until the process is killed, which is how each of them ends.
func (in *instance) serve() {
	mux := http.NewServeMux()
	mux.Handle("/log", &in.log)
	mux.Handle("/metrics", promhttp.HandlerFor(in.metrics, promhttp.HandlerOpts{}))
	page := admin.Config{Guards: []*cacheguard.Guard{in.guard}, Lockers: []admin.Locker{in.locks}}
	if in.feed != nil {
		page.Feeds = map[string]admin.Feed{"shop": in.feed}
	}
	mux.Handle("/admin", admin.NewHandler(page))
	mux.HandleFunc("/get", in.get)
	mux.HandleFunc("/lock", in.lock)
	mux.HandleFunc("/write", func(http.ResponseWriter, *http.Request) { in.writes.Add(1) }) // and it does not invalidate
	mux.HandleFunc("/intend", in.intend)
	mux.HandleFunc("/invalidate", func(_ http.ResponseWriter, r *http.Request) {
		in.must(in.guard.Invalidate(context.Background(), r.FormValue("key")))
	})
	mux.HandleFunc("/update", in.update)
	mux.HandleFunc("/release", func(http.ResponseWriter, *http.Request) { in.once.Do(func() { close(in.release) }) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	in.must(err)
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	in.must(server.Serve(listener))
}

// get gets a key so often, and answers at once if the loader is held. With the parameters fails, panics and large, the loader fails, panics, or returns too much.
func (in *instance) get(w http.ResponseWriter, r *http.Request) {
	key, held := r.FormValue("key"), r.FormValue("held") != ""
	times, err := strconv.Atoi(r.FormValue("times"))
	if err != nil {
		times = 1
	}
	load := func(ctx context.Context) (string, error) {
		if held {
			select {
			case <-in.release:
			case <-ctx.Done():
			}
		}
		switch {
		case r.FormValue("fails") != "":
			return "", errors.New("relation reports is locked")
		case r.FormValue("panics") != "":
			panic("oops")
		case r.FormValue("large") != "":
			return strings.Repeat("x", 9<<20), nil // more than MaxValueBytes
		}
		return fmt.Sprint("value ", in.writes.Load()), context.Cause(ctx)
	}
	run := func() error {
		for range times {
			if _, err := cacheguard.Get(context.Background(), in.guard, key, load); err != nil {
				return err
			}
		}
		return nil
	}
	if held {
		in.tasks.Go(func() { _ = run() }) // owner: the process; stop: its end
		return
	}
	if err := run(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// intend announces a transaction on a key and forgets Done, unless one stands.
func (in *instance) intend(w http.ResponseWriter, r *http.Request) {
	if in.guard.Stats().Intents > 0 {
		return
	}
	if _, err := in.guard.Intend(context.Background(), cacheguard.Changes{Keys: []string{r.FormValue("key")}}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// update is in a write that hangs, unless one is, and answers when that has begun.
func (in *instance) update(w http.ResponseWriter, r *http.Request) {
	if in.guard.Stats().Intents > 0 {
		return
	}
	begun, key := make(chan error, 2), r.FormValue("key")
	overdue := func() float64 { return in.guard.Stats().Of("overdue_total") }
	in.tasks.Go(func() { // owner: the process; stop: UpdateTimeout
		begun <- in.guard.Update(context.Background(), key, func(ctx context.Context) error {
			before := overdue()
			begun <- nil
			<-ctx.Done()
			for overdue() == before { // the lock's time is up a moment before the update's
				<-time.After(10 * time.Millisecond)
			}
			return context.Cause(ctx)
		})
	})
	if err := <-begun; err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// lock holds a lock until it is revoked, and answers at once.
func (in *instance) lock(_ http.ResponseWriter, r *http.Request) {
	name := r.FormValue("name")
	in.tasks.Go(func() { // owner: the process; stop: its end
		_ = in.locks.Do(context.Background(), name, func(held context.Context, _ *mutex.Lease) error {
			<-held.Done()
			return nil
		})
	})
}
