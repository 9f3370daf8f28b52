package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// shared is the server of the tests that do nothing to it, and of the examples.
var shared = servers.Share(func(tb testing.TB) string { return startServer(tb).Socket })

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	shared.Main(m)
}

func startServer(tb testing.TB, settings ...string) *servers.MariaDB {
	return servers.StartMariaDB(tb, func(socket string) bool {
		db, err := sql.Open("mysql", "root@unix("+socket+")/mysql")
		if err != nil {
			return false
		}
		defer db.Close()
		return db.PingContext(context.Background()) == nil
	}, append([]string{"--log-bin=bin", "--server-id=1", "--binlog-format=ROW", "--binlog-row-metadata=FULL", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2"}, settings...)...)
}

// world is a database, a Redis, and a cache of the database's products.
type world struct {
	*testing.T

	conn, name string
	db         *sql.DB
	redis      *redistest.Server
	rdb        *redis.Client // of the feed
	guard      *cacheguard.Guard
	shop       *cacheguard.Cache[int64, string]
	loads      atomic.Int64
}

var databases atomic.Int64

func newWorld(t *testing.T, socket string) *world {
	t.Helper()
	if socket == "" {
		socket = shared.Addr()
	}
	w := &world{T: t, name: fmt.Sprintf("test%d", databases.Add(1)), redis: redistest.Start(t)}
	admin := w.open("root@unix(" + socket + ")/mysql")
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+w.name); err != nil {
		t.Fatal(err)
	}
	w.conn = "root@unix(" + socket + ")/" + w.name
	w.db = w.open(w.conn)
	w.exec("CREATE TABLE products (id bigint PRIMARY KEY, category varchar(20), name varchar(20))")
	w.use(w.redis.Client(t))
	return w
}

// use makes the cache and the feed use a client.
func (w *world) use(rdb *redis.Client) {
	w.rdb = rdb
	w.guard, w.shop = newCache(w, rdb, w.name, func(ctx context.Context, id int64) (name string, err error) {
		w.loads.Add(1)
		err = w.db.QueryRowContext(ctx, "SELECT name FROM products WHERE id = ?", id).Scan(&name)
		return name, err
	})
}

func newCache(tb testing.TB, rdb *redis.Client, prefix string, load func(context.Context, int64) (string, error)) (*cacheguard.Guard, *cacheguard.Cache[int64, string]) {
	tb.Helper()
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: prefix, TTL: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = guard.Close() }) // always nil
	cache, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{Name: "product", NegativeTTL: time.Hour, NotFound: sql.ErrNoRows, Load: load})
	if err != nil {
		tb.Fatal(err)
	}
	return guard, cache
}

func (w *world) open(conn string) *sql.DB {
	w.Helper()
	db, err := sql.Open("mysql", conn)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = db.Close() }) // it is of no use any more
	return db
}

func (w *world) exec(statements ...string) {
	w.Helper()
	conn, err := w.db.Conn(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(w.Context(), statement); err != nil {
			w.Fatalf("%s: %v", statement, err)
		}
	}
}

func (w *world) config(tables ...cdc.Table) Config {
	if tables == nil {
		tables = []cdc.Table{cdc.Rows(w.name+".products", w.shop, func(r cdc.Row) (int64, error) { return r.Int64("id") })}
	}
	return Config{
		Conn: w.conn, Name: w.name, Redis: w.rdb, Tables: tables, Guards: []*cacheguard.Guard{w.guard}, Logger: slog.New(slog.NewTextHandler(w.Output(), nil)),
	}
}

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

func (w *world) catchUp(f *Feed) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	if err := f.CatchUp(ctx); err != nil {
		w.Fatal(err)
	}
}

func (w *world) reads(id int64, want string) {
	w.Helper()
	got, err := w.shop.Get(w.Context(), id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil || got != want {
		w.Errorf("product %d is %q (%v), want %q", id, got, err, want)
	}
	redistest.AwaitNoLease(w, w.redis.Client(w), w.name)
}

func (w *world) keeps(id int64, want string) {
	w.Helper()
	before := w.loads.Load()
	w.reads(id, want)
	if w.loads.Load() != before {
		w.Errorf("product %d was loaded again", id)
	}
}

// TestAReader is a child process of the test of a takeover.
func TestAReader(t *testing.T) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS")})
	name := os.Getenv("NAME")
	guard, products := newCache(t, rdb, name, func(context.Context, int64) (string, error) { return "", errors.New("nobody reads") })
	f, err := New(Config{
		Conn: os.Getenv("CONN"), Name: name, Redis: rdb, Guards: []*cacheguard.Guard{guard},
		Tables: []cdc.Table{cdc.Rows(name+".products", products, func(r cdc.Row) (int64, error) { return r.Int64("id") })},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		redistest.Await(t, "it reads", func() bool { return f.Stats().Reading })
		fmt.Println("reading")
	}()
	t.Log(f.Run(context.Background()))
}

func says(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one with %q", err, text)
		}
	}
}
