package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/feedtest"
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
	*feedtest.Shop

	addr  string
	slot  string
	pool  *pgxpool.Pool
	redis *redistest.Server
}

var databases atomic.Int64

// newWorld makes a database of its own on a server: the shared one, if server is empty.
func newWorld(t *testing.T, server string) *world {
	t.Helper()
	if server == "" {
		server = shared.Addr()
	}
	w := &world{slot: fmt.Sprintf("slot_%d", databases.Add(1)), redis: redistest.Start(t)}
	w.Shop = &feedtest.Shop{T: t, Prefix: w.slot, NotFound: pgx.ErrNoRows, Load: w.load}
	admin := w.connect(server)
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+w.slot+" ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	w.addr = strings.ReplaceAll(server, "dbname=postgres", "dbname="+w.slot)
	w.pool = w.connect(w.addr)
	w.exec(`CREATE TABLE products (id bigint PRIMARY KEY, category text, name text)`)
	w.exec(`CREATE PUBLICATION shop FOR TABLE products`)
	w.Open(w.redis)
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

func (w *world) load(ctx context.Context, id int64) (name string, err error) {
	var category string
	err = w.pool.QueryRow(ctx, "SELECT name, category FROM products WHERE id = $1", id).Scan(&name, &category)
	cacheguard.SetTags(ctx, "category:"+category)
	return name, err
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

func (w *world) config(tables ...cdc.Table) Config {
	if tables == nil {
		tables = []cdc.Table{w.Rows("public.products")}
	}
	return Config{Conn: w.addr, Publication: "shop", Slot: w.slot, Tables: tables, Guards: []*cacheguard.Guard{w.Guard}, Logger: w.Logger()}
}

// run runs a feed until the test or stop ends it.
func (w *world) run(cfg Config) (f *Feed, stop func()) {
	w.Helper()
	f, err := New(cfg)
	return feedtest.Run(w.Shop, f, err)
}

// position is what the slot has confirmed.
func (w *world) position() (lsn string) {
	w.Helper()
	w.ask(&lsn, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1", w.slot)
	return lsn
}

// child starts a process that runs the test TestAReader.
func (w *world) child(env ...string) *redistest.Process {
	return redistest.Child(w.T, "TestAReader", append([]string{"ADDR=" + w.addr, "REDIS=" + w.redis.Addr(), "SLOT=" + w.slot}, env...)...)
}

// TestAReader is a child process of tests with several.
func TestAReader(t *testing.T) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS")})
	guard, products := feedtest.NewCache(t, rdb, os.Getenv("SLOT"), nil, feedtest.LoadNothing)
	tables := []cdc.Table{feedtest.ByID("public.products", products)}
	if os.Getenv("NOTES") != "" {
		tables = append(tables, feedtest.Notes("public.notes", products))
	}
	feedtest.RunChild(t, func(log *slog.Logger) (*Feed, error) {
		return New(Config{
			Conn: os.Getenv("ADDR"), Publication: "shop", Slot: os.Getenv("SLOT"), Guards: []*cacheguard.Guard{guard}, Tables: tables, Logger: log,
		})
	})
}
