// Package feedtest has what the tests of the feeds share: a cache of a database's products, feeds that run for as long as a test, what the cache
// must have when a feed has caught up, and a soak of random writes under disturbances.
package feedtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// Feed is a feed of one of the databases.
type Feed interface {
	Run(ctx context.Context) error
	CatchUp(ctx context.Context) error
	Stats() cdc.Stats
}

// Shop is a cache of a database's products, whose ids have names.
type Shop struct {
	*testing.T

	Prefix   string
	Load     func(ctx context.Context, id int64) (name string, err error)
	NotFound error // of Load

	Client   *redis.Client // of the cache
	Guard    *cacheguard.Guard
	Products *cacheguard.Cache[int64, string]
	Loads    atomic.Int64
	Journal  Journal

	direct *redis.Client // without what Use may have put in between
}

// Open makes the cache in a Redis.
func (s *Shop) Open(server *redistest.Server) {
	s.Helper()
	s.direct = server.Client(s)
	s.Cleanup(func() {
		if s.Failed() {
			s.Log(s.Journal.String())
		}
	})
	s.Use(server.Client(s))
}

// Use makes the cache, and feeds that are made from now on, use a client.
func (s *Shop) Use(rdb *redis.Client, tweaks ...func(*cacheguard.Config)) {
	s.Helper()
	s.Client = rdb
	s.Guard, s.Products = s.Instance(rdb, tweaks...)
}

// Instance is the cache of another instance of the service.
func (s *Shop) Instance(rdb *redis.Client, tweaks ...func(*cacheguard.Config)) (*cacheguard.Guard, *cacheguard.Cache[int64, string]) {
	s.Helper()
	return NewCache(s, rdb, s.Prefix, s.NotFound, func(ctx context.Context, id int64) (string, error) {
		s.Loads.Add(1)
		return s.Load(ctx, id)
	}, tweaks...)
}

// NewCache makes a cache of products.
func NewCache(tb testing.TB, rdb *redis.Client, prefix string, notFound error, load func(context.Context, int64) (string, error),
	tweaks ...func(*cacheguard.Config),
) (*cacheguard.Guard, *cacheguard.Cache[int64, string]) {
	tb.Helper()
	cfg := cacheguard.Config{Prefix: prefix, TTL: time.Hour, RedisTimeout: redistest.Brisk} // a Redis that is slow here is a machine that is busy
	for _, tweak := range tweaks {
		tweak(&cfg)
	}
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = guard.Close() }) // always nil
	cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{Name: "product", NegativeTTL: time.Hour, NotFound: notFound, Load: load})
	if err != nil {
		tb.Fatal(err)
	}
	return guard, cache
}

// Rows maps a table with the products, by its column id.
func (s *Shop) Rows(table string) cdc.Table { return ByID(table, s.Products) }

// ByID maps a table with the products of a cache, by its column id.
func ByID(table string, products *cacheguard.Cache[int64, string]) cdc.Table {
	return cdc.Rows(table, products, func(r cdc.Row) (int64, error) { return r.Int64("id") })
}

// Logger writes into the Log.
func (s *Shop) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(&s.Journal, nil)) }

// Run runs a feed until the test or stop ends it. err is from its making.
func Run[F Feed](s *Shop, f F, err error) (running F, stop func()) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }() // owner: the test; stop: cancel; joined below
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			s.Errorf("Run returned %v", err)
		}
	})
	s.Cleanup(stop)
	return f, stop
}

// Many runs the feeds of many services on one database, which has the product 1, whose name is one. write makes it uno.
func Many(s *Shop, table string, open func(name string, guard *cacheguard.Guard, table cdc.Table) (Feed, error), write func()) {
	s.Helper()
	const services = 12
	var feeds [services]Feed
	var caches [services]*cacheguard.Cache[int64, string]
	for i := range services {
		name := fmt.Sprintf("service_%d", i)
		guard, products := NewCache(s, s.Client, name, s.NotFound, s.Load)
		f, err := open(name, guard, ByID(table, products))
		feeds[i], _ = Run(s, f, err)
		caches[i] = products
	}
	read := func(want string) {
		s.Helper()
		for i, products := range caches {
			s.CatchUp(feeds[i])
			if got, err := products.Get(s.Context(), 1); err != nil || got != want {
				s.Errorf("service %d has %q (%v), want %q", i, got, err, want)
			}
		}
	}
	read("one")
	write()
	read("uno")
}

// CatchUp returns when the feed has caught up.
func (s *Shop) CatchUp(f Feed) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	if err := f.CatchUp(ctx); err != nil {
		s.Fatal(err)
	}
}

// CatchUpInTheEnd returns when the feed has caught up, which takes several attempts while a server does not answer.
func (s *Shop) CatchUpInTheEnd(f Feed) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 4*time.Minute) // only a test that fails waits for all of it
	defer cancel()
	for {
		err := f.CatchUp(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			s.Fatal(err)
		}
		<-time.After(10 * time.Millisecond) // until the next attempt
	}
}

// Reads expects what the cache has of a product; empty: it knows that there is none.
func (s *Shop) Reads(id int64, want string) {
	s.Helper()
	got, err := s.Products.Get(s.Context(), id)
	if errors.Is(err, s.NotFound) {
		got, err = "", nil
	}
	if err != nil || got != want {
		s.Errorf("product %d is %q (%v), want %q", id, got, err, want)
	}
	redistest.AwaitNoLease(s, s.direct, s.Prefix)
}

// Keeps expects that the cache has it still.
func (s *Shop) Keeps(id int64, want string) {
	s.Helper()
	before := s.Loads.Load()
	s.Reads(id, want)
	if s.Loads.Load() != before {
		s.Errorf("product %d was loaded again", id)
	}
}

// Await waits for a fact.
func (s *Shop) Await(what string, cond func() bool) {
	s.Helper()
	redistest.Await(s, what, cond)
}

// Logs waits until a feed has logged a text.
func (s *Shop) Logs(text string) {
	s.Helper()
	s.Await("the log says: "+text, func() bool { return strings.Contains(s.Journal.String(), text) })
}

// Says expects that the error has all the texts.
func Says(tb testing.TB, err error, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			tb.Errorf("error %v, want one with %q", err, text)
		}
	}
}

// Journal keeps what was logged.
type Journal struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write is part of io.Writer.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is what was logged so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
