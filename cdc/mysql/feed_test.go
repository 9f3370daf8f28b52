package mysql

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestWhatIsWrittenPastTheCacheIsReadAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "")
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two'), (3, 'a', 'three')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.Reads(2, "two")
	w.Reads(3, "three")
	w.Reads(9, "")
	w.exec("UPDATE products SET name = 'uno' WHERE id = 1", "DELETE FROM products WHERE id = 2")
	w.exec("START TRANSACTION", "UPDATE products SET name = 'x'", "ROLLBACK")
	w.exec("START TRANSACTION", "UPDATE products SET id = 9 WHERE id = 1", "SAVEPOINT s", "DELETE FROM products", "ROLLBACK TO s", "COMMIT")
	w.CatchUp(f)
	w.Reads(1, "")
	w.Reads(2, "")
	w.Reads(9, "uno")
	w.Keeps(3, "three")
	s := f.Stats()
	expect.Equal(t, "rows", s.Rows, 6)
	expect.Equal(t, "reading", s.Reading, true)
	expect.ErrorIs(t, s.Err)
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
}

func TestALargeTransactionIsInvalidatedInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("INSERT INTO products SELECT seq, 'a', 'old' FROM seq_1_to_25000")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "old")
	w.Reads(25_000, "old")
	w.exec("UPDATE products SET name = 'new'")
	w.CatchUp(f)
	w.Reads(1, "new")
	w.Reads(25_000, "new")
	expect.Equal(t, "rows", f.Stats().Rows, 25_000)
	expect.Equal(t, "transactions", f.Stats().Transactions, 1)
}

func TestWhatTheLogDoesNotNameInvalidatesTheKindWhole(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string][]string{
		"TRUNCATE":           {"TRUNCATE products"},
		"a statement":        {"SET SESSION binlog_format = 'STATEMENT'", "UPDATE products SET name = ''"},
		"rows without names": {"SET GLOBAL binlog_row_metadata = 'NO_LOG'", "UPDATE products SET name = ''"},
		"XA":                 {"XA START 'x'", "UPDATE products SET name = ''", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"},
		"DROP DATABASE":      {"DROP DATABASE $NAME", "CREATE DATABASE $NAME", "USE $NAME", "CREATE TABLE products (id bigint PRIMARY KEY, name text)"},
		"REPLACE":            {"REPLACE INTO products VALUES (1, 'b', '')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := ""
			if name != "TRUNCATE" && name != "REPLACE" { // others would have theirs invalidated, too
				socket = startServer(t).Socket
			}
			w := newWorld(t, socket)
			f, _ := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUp(f)
			w.Reads(1, "one")
			for i := range statements {
				statements[i] = strings.ReplaceAll(statements[i], "$NAME", w.name)
			}
			w.exec(statements...)
			w.CatchUp(f)
			w.Reads(1, "")
		})
	}
}

func TestValuesHaveTheirTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`CREATE TABLE types (id int PRIMARY KEY, tiny tinyint unsigned, mid mediumint unsigned, big bigint unsigned, dec_ decimal(10,2), real_ double,
		bytes varbinary(10), day date, at datetime(1), stamp timestamp NULL, size enum('s','m'), none int, text_ text) CHARSET utf8mb4`)
	var mu sync.Mutex
	values := make(map[string]any)
	f, _ := w.run(w.config(cdc.Table{Name: w.name + ".types", Changed: func(c cdc.Change) cacheguard.Changes {
		mu.Lock()
		defer mu.Unlock()
		for _, column := range c.New.Columns() {
			values[column], _ = c.New.Value(column) // the feed has the error
		}
		return cacheguard.Changes{}
	}}))
	w.CatchUp(f)
	w.exec("SET time_zone = '+02:00'", `INSERT INTO types VALUES (-7, 200, 16000000, 18446744073709551615, 12.30, 1.5, 'raw', '2026-01-02', '2026-01-02 03:04:05.6',
		'2026-01-02 03:04:05', 'm', NULL, 'grüße')`)
	w.CatchUp(f)
	mu.Lock()
	defer mu.Unlock()
	for column, want := range map[string]any{
		"id": int64(-7), "tiny": int64(200), "mid": int64(16_000_000), "big": uint64(1<<64 - 1), "dec_": "12.30", "real_": 1.5, "bytes": "raw",
		"day": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "at": time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC),
		"stamp": time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC), "size": "m", "none": nil, "text_": "grüße",
	} {
		got := values[column]
		if bytes, ok := got.([]byte); ok {
			got = string(bytes)
		}
		expect.Equal(t, column, fmt.Sprintf("%T %v", got, got), fmt.Sprintf("%T %v", want, want))
	}
}

func TestARedisOutageStopsThePosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	proxy := redistest.StartProxy(t, w.redis.Addr())
	w.Use(proxy.Client(t))
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	proxy.Refuse(true)
	w.exec("UPDATE products SET name = 'uno'")
	w.Await("the feed has noticed", func() bool { return f.Stats().Err != nil })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if f.CatchUp(ctx) == nil {
		t.Error("it has caught up without Redis")
	}
	proxy.Refuse(false)
	w.CatchUpInTheEnd(f)
	w.Reads(1, "uno")
	expect.Equal(t, "whole kinds, at the first start", f.Stats().Whole, 1)
}

func TestAPositionThatIsLostInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world){
		"Redis has lost it": func(w *world) { expect.ErrorIs(w, w.Client.FlushAll(w.Context()).Err()) },
		"the server has purged the log": func(w *world) {
			w.exec("FLUSH BINARY LOGS")
			w.Await("nobody reads the first file any more", func() bool {
				w.exec("PURGE BINARY LOGS TO 'bin.000002'")
				var file string
				var size any
				expect.ErrorIs(w, w.db.QueryRowContext(w.Context(), "SHOW BINARY LOGS").Scan(&file, &size))
				return file == "bin.000002"
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, startServer(t).Socket)
			f, stop := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUp(f)
			stop()
			w.Reads(1, "one")
			w.exec("UPDATE products SET name = 'uno'")
			lose(w)
			f, _ = w.run(w.config())
			w.CatchUp(f)
			w.Reads(1, "uno")
			expect.Equal(t, "whole kinds", f.Stats().Whole, 1)
		})
	}
}

func TestACommitThatNobodySeesYetIsNotInvalidated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.exec("SET GLOBAL rpl_semi_sync_master_timeout = 3600000", "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_enabled = 1")
	committed := make(chan error, 1)
	go func() { // owner: the test; stop: no replica has to acknowledge any more; joined below
		_, err := w.db.ExecContext(context.Background(), "UPDATE products SET name = 'uno'")
		committed <- err
	}()
	w.Await("the commit is in the log, and nobody sees it", func() bool {
		var n int
		expect.ErrorIs(t, w.db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.processlist WHERE state LIKE '%semi-sync%'").Scan(&n))
		return n > 0
	})
	w.Await("the log was sent", func() bool {
		var n int
		expect.ErrorIs(t, w.db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.processlist WHERE command = 'Binlog Dump' AND state LIKE '%sent all%'").Scan(&n))
		return n > 0
	})
	for range 100 { // a feed that invalidates now does so meanwhile
		w.Reads(1, "one") // the database has no other
	}
	w.exec("SET GLOBAL rpl_semi_sync_master_enabled = 0")
	expect.ErrorIs(t, <-committed)
	w.CatchUp(f)
	w.Reads(1, "uno")
}

func TestAnotherInstanceTakesOverFromOneThatWasKilledOrFrozen(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(*redistest.Process){"killed": (*redistest.Process).Kill, "frozen": (*redistest.Process).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			fleet := feedtest.StartFleet(w.Shop, 1, func() *redistest.Process { return w.child() })
			fleet.AwaitReader()
			f, _ := w.run(w.config())
			fleet.TakesOver(f, func(sql string) { w.exec(sql) }, disturb)
		})
	}
}

func TestARestartedDatabaseIsSurvived(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := newWorld(t, server.Socket)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	server.Kill()
	server.Start()
	w.Await("the database answers", func() bool { return w.db.PingContext(t.Context()) == nil })
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(f)
	w.Reads(1, "uno")
}

func TestNewAndSelfCheckNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Name: "{", Conn: "x"})
	feedtest.Says(t, err, "Config.Conn", "Config.Name", "Config.Redis", "Tables: is empty", "Guards: is empty")
	nothing := func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }
	_, err = New(Config{Guards: []*cacheguard.Guard{nil}, Tables: []cdc.Table{{Name: "a.b", Changed: nothing}, {Name: "a.b", Changed: nothing}, {Name: "a.c"}}})
	feedtest.Says(t, err, "Config.Conn: is empty", "Guards: one of them is nil", "Tables[1]: a.b is there twice", "Tables[2]: a.c: Changed is nil")
	w := newWorld(t, startServer(t, "--binlog-format=MIXED", "--binlog-row-image=MINIMAL", "--binlog-row-metadata=NO_LOG").Socket)
	w.exec("CREATE USER weak", "GRANT SELECT ON *.* TO weak", "CREATE VIEW `view` AS SELECT 1 AS id")
	check := func(change func(*Config), texts ...string) {
		t.Helper()
		cfg := w.config()
		change(&cfg)
		f, err := New(cfg)
		expect.ErrorIs(t, err)
		feedtest.Says(t, f.SelfCheck(t.Context()), texts...)
	}
	check(func(*Config) {}, "SET GLOBAL binlog_format = 'ROW'", "SET GLOBAL binlog_row_image = 'FULL'", "SET GLOBAL binlog_row_metadata = 'FULL'")
	check(func(c *Config) { c.Conn = strings.Replace(c.Conn, "root", "weak", 1) }, "GRANT REPLICATION SLAVE ON *.* TO 'weak'", "GRANT BINLOG MONITOR")
	check(func(c *Config) { c.Conn = strings.Replace(c.Conn, "root", "root:wrong", 1) }, "Access denied")
	check(func(c *Config) { c.Tables[0].Name = w.name + ".view" }, w.name+".view is no table")
	check(func(c *Config) { c.Tables[0].Name = "products" }, "there is no table products", w.name+".products")
	var none *Feed
	expect.ErrorIs(t, none.Run(t.Context()), errNilFeed)
	expect.ErrorIs(t, none.CatchUp(t.Context()), errNilFeed)
	expect.ErrorIs(t, none.SelfCheck(t.Context()), errNilFeed)
	expect.ErrorIs(t, none.Stats().Err, errNilFeed)
}
