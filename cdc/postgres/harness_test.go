package postgres

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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// shared is the server of the tests that do nothing to it, and of the examples.
var shared = servers.Share(func(tb testing.TB) string { return startServer(tb).Address })

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	shared.Main(m)
}

// AddressOfExamples is the address of a PostgreSQL with a table products, for the examples.
func AddressOfExamples() string { return shared.Addr() }

func startServer(tb testing.TB, settings ...string) *servers.Postgres {
	return servers.StartPostgres(tb, func(address string) bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return false
		}
		return conn.Close(ctx) == nil
	}, append([]string{"wal_level=logical", "max_wal_senders=50", "max_replication_slots=50"}, settings...)...)
}

// world is a database, a Redis, and a cache of the database's products.
type world struct {
	*testing.T

	addr  string
	slot  string
	pool  *pgxpool.Pool
	redis *redistest.Server
	guard *cacheguard.Guard
	shop  *cacheguard.Cache[int64, string]
	loads atomic.Int64
	log   journal
}

var databases atomic.Int64

// newWorld makes a database of its own on a server: the shared one, if server is empty.
func newWorld(t *testing.T, server string) *world {
	t.Helper()
	if server == "" {
		server = shared.Addr()
	}
	w := &world{T: t, slot: fmt.Sprintf("slot_%d", databases.Add(1)), redis: redistest.Start(t)}
	admin := w.connect(server)
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+w.slot); err != nil {
		t.Fatal(err)
	}
	w.addr = strings.ReplaceAll(server, "dbname=postgres", "dbname="+w.slot)
	w.pool = w.connect(w.addr)
	w.exec(`CREATE TABLE products (id bigint PRIMARY KEY, category text, name text)`)
	w.exec(`CREATE PUBLICATION shop FOR TABLE products`)
	w.guard, w.shop = w.newCache(w.redis.Client(t))
	t.Cleanup(func() {
		_, _ = admin.Exec(context.Background(), "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", w.slot)
	})
	return w
}

func (w *world) connect(addr string) *pgxpool.Pool {
	w.Helper()
	pool, err := pgxpool.New(context.Background(), addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(pool.Close)
	return pool
}

func (w *world) newCache(rdb *redis.Client, tweaks ...func(*cacheguard.Config)) (*cacheguard.Guard, *cacheguard.Cache[int64, string]) {
	w.Helper()
	cfg := cacheguard.Config{Prefix: w.slot, TTL: time.Hour}
	for _, tweak := range tweaks {
		tweak(&cfg)
	}
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = guard.Close() }) // always nil
	cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product", NegativeTTL: time.Hour, NotFound: pgx.ErrNoRows,
		Load: func(ctx context.Context, id int64) (name string, err error) {
			w.loads.Add(1)
			var category string
			err = w.pool.QueryRow(ctx, "SELECT name, category FROM products WHERE id = $1", id).Scan(&name, &category)
			cacheguard.SetTags(ctx, "category:"+category)
			return name, err
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	return guard, cache
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) ask(into any, sql string, args ...any) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), sql, args...).Scan(into); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) rows() cdc.Table {
	return cdc.Rows("public.products", w.shop, func(r cdc.Row) (int64, error) { return r.Int64("id") })
}

func (w *world) config(tables ...cdc.Table) Config {
	if tables == nil {
		tables = []cdc.Table{w.rows()}
	}
	return Config{
		Conn: w.addr, Publication: "shop", Slot: w.slot, Tables: tables, Guards: []*cacheguard.Guard{w.guard},
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
}

// run runs a feed until the test or stop ends it.
func (w *world) run(cfg Config) (f *Feed, stop func()) {
	w.Helper()
	f, err := New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }() // owner: the test; stop: cancel; joined below
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			w.Errorf("Run returned %v", err)
		}
	})
	w.Cleanup(stop)
	return f, stop
}

// catchUp returns when the feed has caught up.
func (w *world) catchUp(f *Feed) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	if err := f.CatchUp(ctx); err != nil {
		w.Fatalf("%v\n%s", err, w.log.String())
	}
}

// reads expects what the cache has of a product; empty: it knows that there is none.
func (w *world) reads(id int64, want string) {
	w.Helper()
	got, err := w.shop.Get(w.Context(), id)
	if errors.Is(err, pgx.ErrNoRows) {
		got, err = "", nil
	}
	if err != nil || got != want {
		w.Errorf("product %d is %q (%v), want %q", id, got, err, want)
	}
	redistest.AwaitNoLease(w, w.redis.Client(w), w.slot)
}

// keeps expects that the cache has it still.
func (w *world) keeps(id int64, want string) {
	w.Helper()
	before := w.loads.Load()
	w.reads(id, want)
	if w.loads.Load() != before {
		w.Errorf("product %d was loaded again", id)
	}
}

func (w *world) await(what string, cond func() bool) {
	w.Helper()
	redistest.Await(w, what, cond)
}

// position is what the slot has confirmed.
func (w *world) position() (lsn string) {
	w.Helper()
	w.ask(&lsn, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", w.slot)
	return lsn
}

// journal keeps what was logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (w *world) logs(text string) {
	w.Helper()
	w.await("the log says: "+text, func() bool { return strings.Contains(w.log.String(), text) })
}

// loadNothing is for caches that the test does not read.
func loadNothing(context.Context, string) (string, error) { return "", cacheguard.ErrNotFound }
