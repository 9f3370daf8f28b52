package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// shared is the server of the tests that do nothing to it, and of the examples.
var shared = servers.Share(func(tb testing.TB) string { return startServer(tb).Socket })

func TestMain(m *testing.M) {
	logging.Disable()                         // of go-redis, which reports every connection that is lost
	_ = driver.SetLogger(&driver.NopLogger{}) // it is not nil
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
	*feedtest.Shop

	conn, name string
	db         *sql.DB
	redis      *redistest.Server
}

var databases atomic.Int64

func newWorld(t *testing.T, socket string) *world {
	t.Helper()
	if socket == "" {
		socket = shared.Addr()
	}
	w := &world{name: fmt.Sprintf("test%d", databases.Add(1)), redis: redistest.Start(t)}
	w.Shop = &feedtest.Shop{T: t, Prefix: w.name, NotFound: sql.ErrNoRows, Load: w.load}
	admin := w.open("root@unix(" + socket + ")/mysql")
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+w.name); err != nil {
		t.Fatal(err)
	}
	w.conn = "root@unix(" + socket + ")/" + w.name
	w.db = w.open(w.conn)
	w.exec("CREATE TABLE products (id bigint PRIMARY KEY, category varchar(20), name varchar(20))")
	w.Open(w.redis)
	return w
}

func (w *world) load(ctx context.Context, id int64) (name string, err error) {
	err = w.db.QueryRowContext(ctx, "SELECT name FROM products WHERE id = ?", id).Scan(&name)
	return name, err
}

func (w *world) open(conn string) *sql.DB {
	w.Helper()
	db, err := sql.Open("mysql", conn)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = db.Close() }) // whatever it says, the connection is gone
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
		tables = []cdc.Table{w.Rows(w.name + ".products")}
	}
	return Config{Conn: w.conn, Name: w.name, Redis: w.Client, Tables: tables, Guards: []*cacheguard.Guard{w.Guard}, Logger: w.Logger()}
}

func (w *world) run(cfg Config) (f *Feed, stop func()) {
	w.Helper()
	f, err := New(cfg)
	return feedtest.Run(w.Shop, f, err)
}

// child starts a process that runs the test TestAReader.
func (w *world) child(env ...string) *redistest.Process {
	return redistest.Child(w.T, "TestAReader", append([]string{"CONN=" + w.conn, "REDIS=" + w.redis.Addr(), "NAME=" + w.name}, env...)...)
}

// TestAReader is a child process of tests with several.
func TestAReader(t *testing.T) {
	if !redistest.IsChild(t) {
		t.Skip("it is for child processes")
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS")})
	name := os.Getenv("NAME")
	guard, products := feedtest.NewCache(t, rdb, name, nil, feedtest.LoadNothing)
	tables := []cdc.Table{feedtest.ByID(name+".products", products)}
	if os.Getenv("NOTES") != "" {
		tables = append(tables, feedtest.Notes(name+".notes", products))
	}
	feedtest.RunChild(t, func(log *slog.Logger) (*Feed, error) {
		return New(Config{Conn: os.Getenv("CONN"), Name: name, Redis: rdb, Guards: []*cacheguard.Guard{guard}, Tables: tables, Logger: log})
	})
}
