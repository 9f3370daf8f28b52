package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // a driver
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	_ "modernc.org/sqlite" // a driver

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// The servers of all tests. Each test has a database of its own.
var (
	shared    *redistest.Server
	postgres  string
	mariadb   string
	databases atomic.Int64
)

func TestMain(m *testing.M) {
	logging.Disable()                       // of go-redis, which reports every connection that is lost
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it is not nil
	leaks.Main(run{m})
}

type run struct{ tests *testing.M }

// Run starts the servers, runs the tests, and stops the servers before anybody looks for goroutines.
func (r run) Run() int {
	if redistest.InChild() {
		return r.tests.Run()
	}
	server, stop, err := redistest.StartForMain()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	shared = server
	end, err := servers.Try(func(tb testing.TB) {
		servers.StartPostgres(tb, func(address string) bool { postgres = address; return answers("pgx", address) })
		servers.StartMariaDB(tb, func(socket string) bool { mariadb = "root@unix(" + socket + ")/"; return answers("mysql", mariadb) })
	})
	defer end()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return r.tests.Run()
}

func answers(driver, source string) bool {
	db, err := sql.Open(driver, source)
	if err != nil {
		return false
	}
	defer db.Close()
	return db.PingContext(context.Background()) == nil
}

// world is a database, and a cache of its products.
type world struct {
	*feedtest.Shop

	dialect        Dialect
	driver, source string
	db             *sql.DB
}

// everywhere runs a test on each kind of database.
func everywhere(t *testing.T, test func(w *world)) {
	t.Parallel()
	for _, d := range []Dialect{SQLite, PostgreSQL, MySQL} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, d, shared.Client(t)))
		})
	}
}

func newWorld(t *testing.T, d Dialect, rdb *redis.Client) *world {
	t.Helper()
	return newWorldAt(t, d, map[Dialect]string{PostgreSQL: postgres, MySQL: mariadb}[d], rdb)
}

// newWorldAt makes a world on a database server.
func newWorldAt(t *testing.T, d Dialect, server string, rdb *redis.Client) *world {
	t.Helper()
	w := &world{dialect: d}
	w.driver, w.source, w.db = open(t, d, server)
	w.Shop = &feedtest.Shop{T: t, Prefix: fmt.Sprintf("%s%d", t.Name(), databases.Add(1)), NotFound: sql.ErrNoRows, Load: w.load}
	w.exec(`CREATE TABLE products (id bigint PRIMARY KEY, category varchar(20), name varchar(20))`)
	for _, statement := range append(CreateTable(d), Triggers(d, "products", "id", "category")...) {
		w.exec(statement)
	}
	w.Open(shared)
	w.Use(rdb)
	return w
}

func (w *world) load(ctx context.Context, id int64) (name string, err error) {
	err = w.db.QueryRowContext(ctx, "SELECT name FROM products WHERE id = "+number(id)).Scan(&name)
	return name, err
}

func open(t *testing.T, d Dialect, server string) (driver, source string, db *sql.DB) {
	t.Helper()
	driver, source = "sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
	name := fmt.Sprintf("test%d", databases.Add(1))
	switch d {
	case PostgreSQL:
		driver, source = "pgx", strings.ReplaceAll(server, "dbname=postgres", "dbname="+name)
		create(t, driver, server, name+" ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	case MySQL:
		driver, source = "mysql", server+name
		create(t, driver, server, name)
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // whatever it says, the connection is gone
	return driver, source, db
}

func create(t *testing.T, driver, source, name string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
}

func (w *world) exec(statement string) {
	w.Helper()
	if _, err := w.db.ExecContext(w.Context(), statement); err != nil {
		w.Fatalf("%s: %v", statement, err)
	}
}

func (w *world) config() Config {
	return Config{
		Dialect: w.dialect, Guards: []*cacheguard.Guard{w.Guard}, Poll: 10 * time.Millisecond, Logger: w.Logger(), Tables: []cdc.Table{w.Rows("products")},
	}
}

func (w *world) run(cfg Config) (f *Feed, stop func()) {
	w.Helper()
	f, err := New(w.db, cfg)
	return feedtest.Run(w.Shop, f, err)
}

func (w *world) left() (n int) {
	w.Helper()
	if err := w.db.QueryRowContext(w.Context(), "SELECT count(*) FROM cacheguard_outbox WHERE op <> 'reading'").Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func TestWhatIsWrittenPastTheCacheIsReadAnew(t *testing.T) {
	everywhere(t, func(w *world) {
		f, _ := w.run(w.config())
		w.Reads(1, "")
		w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
		w.CatchUp(f)
		w.Reads(1, "one")
		w.Reads(2, "two")
		w.exec("UPDATE products SET name = 'uno' WHERE id = 1")
		w.exec("DELETE FROM products WHERE id = 2")
		w.CatchUp(f)
		w.Reads(1, "uno")
		w.Reads(2, "")
		w.Reads(9, "")
		w.exec("UPDATE products SET id = 9 WHERE id = 1")
		w.CatchUp(f)
		w.Reads(1, "")
		w.Reads(9, "uno")
		expect.Equal(w, "rows that are left", w.left(), 0)
		expect.Equal(w, "rows", f.Stats().Rows, 5)
		expect.ErrorIs(w, f.SelfCheck(w.Context()))
	})
}

func TestWhatIsRolledBackInvalidatesNothing(t *testing.T) {
	everywhere(t, func(w *world) {
		f, _ := w.run(w.config())
		tx, err := w.db.BeginTx(w.Context(), nil)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := tx.ExecContext(w.Context(), "INSERT INTO products VALUES (1, 'a', 'one')"); err != nil {
			w.Fatal(err)
		}
		expect.ErrorIs(w, tx.Rollback())
		w.exec("INSERT INTO products VALUES (2, 'a', 'two')")
		w.CatchUp(f)
		expect.Equal(w, "rows", f.Stats().Rows, 1)
	})
}

func TestWhatWasReadIsMatchedByWhatIsCommittedLater(t *testing.T) {
	t.Parallel()
	for _, d := range []Dialect{PostgreSQL, MySQL} { // SQLite has one writer
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, d, shared.Client(t))
			f, _ := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
			w.CatchUp(f)
			w.Reads(1, "one")
			tx, err := w.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "UPDATE products SET name = 'uno' WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			w.exec("UPDATE products SET name = 'dos' WHERE id = 2") // a larger id in the outbox, and seen before
			w.Await("it is invalidated", func() bool { return f.Stats().Rows == 3 })
			w.Reads(1, "one")
			expect.ErrorIs(t, tx.Commit())
			w.CatchUp(f)
			w.Reads(1, "uno")
		})
	}
}

func TestARedisOutageKeepsTheRows(t *testing.T) {
	t.Parallel()
	for _, d := range []Dialect{SQLite, PostgreSQL, MySQL} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			proxy := redistest.StartProxy(t, shared.Addr())
			w := newWorld(t, d, proxy.Client(t))
			f, _ := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUp(f)
			w.Reads(1, "one")
			proxy.Refuse(true)
			w.exec("UPDATE products SET name = 'uno'")
			w.Await("the feed has noticed", func() bool { return f.Stats().Err != nil })
			w.exec("UPDATE products SET name = 'eins'") // writers do not wait
			expect.Equal(t, "rows that are left", w.left(), 2)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			expect.ErrorIs(t, f.CatchUp(ctx), context.DeadlineExceeded)
			proxy.Refuse(false)
			w.CatchUp(f)
			w.Reads(1, "eins")
		})
	}
}

func TestAnOutboxWithTooManyRowsIsGivenUpForOneThatStandsForAll(t *testing.T) {
	everywhere(t, func(w *world) {
		f, stop := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.Reads(1, "one")
		stop()
		for n := range 30 {
			w.exec(fmt.Sprintf("UPDATE products SET name = 'n%d'", n))
		}
		cfg := w.config()
		cfg.MaxRows = 20
		f, _ = w.run(cfg)
		w.CatchUp(f)
		w.Reads(1, "n29")
		expect.Equal(w, "rows", f.Stats().Rows, 1)
		expect.Equal(w, "whole kinds", f.Stats().Whole, 1)
	})
}

func TestAWrongPasswordAndAMissingRightAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, PostgreSQL, shared.Client(t))
	w.exec("CREATE ROLE weak LOGIN")
	defer w.exec("DROP ROLE weak")
	var name string
	expect.ErrorIs(t, w.db.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name))
	weak, err := sql.Open("pgx", strings.NewReplacer("dbname=postgres", "dbname="+name, "user=test", "user=weak").Replace(postgres))
	expect.ErrorIs(t, err)
	defer weak.Close()
	f, err := New(weak, w.config())
	expect.ErrorIs(t, err)
	feedtest.Says(t, f.SelfCheck(t.Context()), "permission denied for table cacheguard_outbox")
	wrong, err := sql.Open("mysql", strings.Replace(mariadb, "root", "root:wrong", 1))
	expect.ErrorIs(t, err)
	defer wrong.Close()
	f, err = New(wrong, w.config())
	expect.ErrorIs(t, err)
	feedtest.Says(t, f.SelfCheck(t.Context()), "Access denied")
}

func TestTruncateInvalidatesTheKindWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, PostgreSQL, shared.Client(t))
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("TRUNCATE products")
	w.CatchUp(f)
	w.Reads(1, "")
}

func TestTwoInstancesDoNotMissARow(t *testing.T) {
	everywhere(t, func(w *world) {
		f, _ := w.run(w.config())
		w.run(w.config())
		for round := range 5 {
			for id := range int64(20) {
				w.exec(fmt.Sprintf("DELETE FROM products WHERE id = %d", id))
				w.exec(fmt.Sprintf("INSERT INTO products VALUES (%d, 'a', 'r%d')", id, round))
			}
			w.CatchUp(f)
			for id := range int64(20) {
				w.Reads(id, fmt.Sprintf("r%d", round))
			}
		}
	})
}

func TestRowsOfATableThatIsNotMappedStayForOneThatMapsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, SQLite, shared.Client(t))
	w.exec("CREATE TABLE notes (id bigint PRIMARY KEY)")
	for _, statement := range Triggers(SQLite, "notes", "id") {
		w.exec(statement)
	}
	f, _ := w.run(w.config())
	w.exec("INSERT INTO notes VALUES (1)")
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	expect.Equal(t, "rows that are left", w.left(), 1)
	feedtest.Says(t, f.SelfCheck(t.Context()), "rows of table notes")
}

func TestAColumnThatTheTriggersDoNotNoteInvalidatesTheKindWhole(t *testing.T) {
	everywhere(t, func(w *world) {
		cfg := w.config()
		cfg.Tables = []cdc.Table{{Name: "products", Kinds: []cdc.Kind{w.Products}, Changed: func(c cdc.Change) cacheguard.Changes {
			name, _ := c.New.String("name") // the feed has the error
			return cacheguard.Changes{Tags: []string{name}}
		}}}
		f, _ := w.run(cfg)
		feedtest.Says(w, f.SelfCheck(w.Context()), "products", "column name")
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.Reads(1, "one")
		w.exec("UPDATE products SET name = 'uno'")
		w.CatchUp(f)
		w.Reads(1, "uno")
		w.Logs("column name")
		expect.Equal(w, "rows without keys", f.Stats().Unmapped, 2)
		expect.Equal(w, "rows that are left", w.left(), 0)
	})
}

func TestNewAndSelfCheckNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(nil, Config{Dialect: "oracle", Poll: 1, MaxRows: -2})
	feedtest.Says(t, err, "db: is nil", "Dialect", "Poll", "MaxRows", "Tables: is empty", "Guards: is empty")
	w := newWorld(t, SQLite, shared.Client(t))
	nothing := func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }
	_, err = New(w.db, Config{Dialect: SQLite, Guards: []*cacheguard.Guard{nil}, Tables: []cdc.Table{
		{Name: "a", Changed: nothing}, {Name: "a", Changed: nothing}, {Name: "b"}, {Name: "*", Changed: nothing},
	}})
	feedtest.Says(t, err, "Guards: one of them is nil", "Tables[1]: a is there twice", "Tables[2]: b: Changed is nil", "* stands for all tables")
	cfg := w.config()
	cfg.Tables[0].Name = "unknown"
	other, err := New(w.db, cfg)
	expect.ErrorIs(t, err)
	feedtest.Says(t, other.SelfCheck(t.Context()), "table unknown has no trigger cacheguard_unknown_insert")
	f, err := New(w.db, w.config())
	expect.ErrorIs(t, err)
	w.exec("DROP TRIGGER cacheguard_products_update")
	feedtest.Says(t, f.SelfCheck(t.Context()), "products has no trigger cacheguard_products_update")
	w.exec("DROP TABLE cacheguard_outbox")
	feedtest.Says(t, f.SelfCheck(t.Context()), "CREATE TABLE")
	var none *Feed
	expect.ErrorIs(t, none.Run(t.Context()), errNilFeed)
	expect.ErrorIs(t, none.CatchUp(t.Context()), errNilFeed)
	expect.ErrorIs(t, none.SelfCheck(t.Context()), errNilFeed)
	expect.ErrorIs(t, none.Stats().Err, errNilFeed)
}
