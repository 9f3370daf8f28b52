package transactions

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pgxv5 "github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"gorm.io/driver/postgres"
	gormio "gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/transactions/gorm"
	"github.com/cacheguard/go/examples/transactions/pgx"
	"github.com/cacheguard/go/examples/transactions/shop"
	"github.com/cacheguard/go/examples/transactions/sql"
	"github.com/cacheguard/go/examples/transactions/sqlc"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// database is the PostgreSQL of all tests.
var database = servers.Share(func(tb testing.TB) string {
	return servers.StartPostgres(tb, func(address string) bool {
		conn, err := pgxv5.Connect(context.Background(), address)
		return err == nil && conn.Close(context.Background()) == nil
	}).Address
})

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	database.Main(m)
}

// writer is what each of the programs does.
type writer interface {
	Buy(ctx context.Context, customer, product, count int64) error
	Discount(ctx context.Context, category string, percent int64) error
}

// instance is a process of a program.
type instance struct {
	writer
	shop.Caches
	guard *cacheguard.Guard
}

// programs open the database, and make an instance with it. With the tag generated, ent_test.go adds that one.
var programs = map[string]func(testing.TB, *cacheguard.Guard, string) (writer, shop.Caches){
	"sql": func(tb testing.TB, g *cacheguard.Guard, address string) (writer, shop.Caches) {
		s, err := sql.New(g, openSQL(tb, address))
		must(tb, err)
		return s, s.Caches
	},
	"pgx": func(tb testing.TB, g *cacheguard.Guard, address string) (writer, shop.Caches) {
		s, err := pgx.New(g, openPool(tb, address))
		must(tb, err)
		return s, s.Caches
	},
	"gorm": func(tb testing.TB, g *cacheguard.Guard, address string) (writer, shop.Caches) {
		db, err := gormio.Open(postgres.New(postgres.Config{Conn: openSQL(tb, address)}), &gormio.Config{Logger: logger.Discard})
		must(tb, err)
		s, err := gorm.New(g, db)
		must(tb, err)
		return s, s.Caches
	},
	"sqlc": func(tb testing.TB, g *cacheguard.Guard, address string) (writer, shop.Caches) {
		s, err := sqlc.New(g, openPool(tb, address))
		must(tb, err)
		return s, s.Caches
	},
}

func openSQL(tb testing.TB, address string) *stdsql.DB {
	db, err := stdsql.Open("pgx", address)
	must(tb, err)
	tb.Cleanup(func() { _ = db.Close() }) // nothing is under way
	return db
}

func openPool(tb testing.TB, address string) *pgxpool.Pool {
	pool, err := pgxpool.New(context.Background(), address)
	must(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// short is a lease, so that the intents of a dead process expire soon.
const short = 300 * time.Millisecond

// open starts an instance.
func open(tb testing.TB, program, address string, rdb *redis.Client, lease time.Duration) instance {
	tb.Helper()
	guard, err := cacheguard.New(rdb, cacheguard.Config{
		Prefix: "shop", TTL: time.Hour, LeaseTTL: lease, RedisTimeout: 5 * time.Second,
	})
	must(tb, err)
	writer, caches := programs[program](tb, guard, address)
	tb.Cleanup(func() { must(tb, guard.Close()) }) // before the database, because loads may still wait for that
	return instance{writer, caches, guard}
}

const (
	customer = 7
	boot     = 42 // ten of them, at 100.00
	sandal   = 43 // a boot, too, as far as discounts go
)

// world is a database and a Redis of the test's own, with two instances of a program. The first one writes.
type world struct {
	*testing.T
	program string
	address string
	redis   *redistest.Server
	proxy   *redistest.Proxy // between Redis and the first instance
	pool    *pgxpool.Pool
	all     []instance
}

var worlds atomic.Int64

// forEach runs a test with each of the programs.
func forEach(t *testing.T, test func(w *world)) {
	t.Parallel()
	for program := range programs {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			w := &world{T: t, program: program, redis: redistest.Start(t)}
			name := fmt.Sprint("shop", worlds.Add(1))
			_, err := openPool(t, database.Addr()).Exec(t.Context(), "CREATE DATABASE "+name)
			must(t, err)
			w.address = strings.ReplaceAll(database.Addr(), "dbname=postgres", "dbname="+name)
			w.pool = openPool(t, w.address)
			_, err = w.pool.Exec(t.Context(), shop.Schema+`; INSERT INTO products VALUES (42, 'Boot', 'boots', 10000, 10), (43, 'Sandal', 'boots', 5000, 10)`)
			must(t, err)
			w.proxy = redistest.StartProxy(t, w.redis.Addr())
			w.all = []instance{open(t, program, w.address, w.proxy.Client(t), short), open(t, program, w.address, w.redis.Client(t), short)}
			test(w)
		})
	}
}

// sees is what an instance answers about both products and the customer's orders.
func (w *world) sees(i instance) string {
	w.Helper()
	ctx := w.Context()
	b, err := i.Products.Get(ctx, boot)
	must(w, err)
	s, err := i.Products.Get(ctx, sandal)
	must(w, err)
	orders, err := i.Orders.Get(ctx, customer)
	must(w, err)
	var lines []string
	for _, l := range orders {
		lines = append(lines, fmt.Sprintf("%d %s at %d", l.Count, l.Product, l.Cents))
	}
	return fmt.Sprintf("%d at %d, %d at %d, %q", b.Stock, b.Cents, s.Stock, s.Cents, lines)
}

// see reports what an instance answers that is not wanted.
func (w *world) see(when, want string) {
	w.Helper()
	for n, i := range w.all {
		if got := w.sees(i); got != want {
			w.Errorf("%s, instance %d answers %s, want %s", when, n, got, want)
		}
	}
}
