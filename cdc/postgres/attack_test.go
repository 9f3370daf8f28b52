package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// TestWhatChangesValuesWithoutRowsInvalidatesTheKindsWhole has statements after which a query returns other values, and of which the log has no row.
func TestWhatChangesValuesWithoutRowsInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	offAndBack := "ALTER TABLE products SET UNLOGGED; UPDATE products SET name = 'uno'; ALTER TABLE products SET LOGGED"
	for name, c := range map[string]struct{ make, sql, want string }{
		"a table of a publication of all tables that leaves the log and is back": {"DROP PUBLICATION shop; CREATE PUBLICATION shop FOR ALL TABLES", offAndBack, "uno"},
		"a table of a published schema that leaves the log and is back":          {"ALTER PUBLICATION shop SET TABLES IN SCHEMA public", offAndBack, "uno"},
		"a partition of a published table that leaves the log and is back":       {"DROP TABLE products; " + leaves + "; ALTER PUBLICATION shop SET TABLE products", strings.ReplaceAll(offAndBack, "TABLE products", "TABLE leaf"), "uno"},
		"a partition of a published partition, whose table is out and back":      {deep("public.root"), "ALTER TABLE root DETACH PARTITION stem; UPDATE products SET name = 'uno'; ALTER TABLE root ATTACH PARTITION stem DEFAULT", "uno"},
		"a partition whose table leaves the published schema and is back":        {deep("out.root") + "; ALTER PUBLICATION shop SET TABLES IN SCHEMA out", "ALTER TABLE out.root SET SCHEMA public; UPDATE products SET name = 'uno'; ALTER TABLE root SET SCHEMA out", "uno"},
		"a type with USING":         {"", "ALTER TABLE products ALTER COLUMN name TYPE text USING upper(name)", "ONE"},
		"a column in place of one":  {"", "ALTER TABLE products DROP COLUMN name, ADD COLUMN name text DEFAULT 'new'", "new"},
		"columns that swap names":   {"", "ALTER TABLE products RENAME name TO was; ALTER TABLE products RENAME category TO name; ALTER TABLE products RENAME was TO category", "a"},
		"a schema in place of one":  {"", "CREATE SCHEMA anew; CREATE TABLE anew.products AS SELECT id, category, 'new' AS name FROM products; ALTER TABLE anew.products ADD PRIMARY KEY (id); ALTER PUBLICATION shop ADD TABLE anew.products; ALTER SCHEMA public RENAME TO old; ALTER SCHEMA anew RENAME TO public", "new"},
		"a table in place of one":   {"", "CREATE TABLE anew AS SELECT id, category, 'new' AS name FROM products; ALTER TABLE anew ADD PRIMARY KEY (id); ALTER PUBLICATION shop ADD TABLE anew; ALTER TABLE products RENAME TO old; ALTER TABLE anew RENAME TO products", "new"},
		"a table that is restored":  {"", "CREATE TABLE anew AS SELECT id, category, 'new' AS name FROM products; DROP TABLE products; ALTER TABLE anew RENAME TO products; ALTER TABLE products ADD PRIMARY KEY (id); ALTER PUBLICATION shop ADD TABLE products", "new"},
		"a child that is taken out": {"", "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (products); INSERT INTO child VALUES (2, 'b', 'two'); ALTER TABLE child NO INHERIT products; DELETE FROM ONLY products", ""},
	} {
		for _, when := range []string{"while it runs", "while none runs"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "")
				w.exec("SELECT 1;" + c.make)
				f, stop := w.run(w.config())
				w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
				w.CatchUp(f)
				w.Reads(1, "one")
				if when == "while none runs" {
					stop()
				}
				w.exec(c.sql)
				w.pool.Reset() // which remembers the columns of its queries
				if when == "while none runs" {
					f, _ = w.run(w.config())
				}
				w.CatchUp(f)
				w.Reads(1, c.want)
			})
		}
	}
}

// deep makes the mapped table a partition of a partition, of a table that is published.
func deep(root string) string {
	return "DROP TABLE products; CREATE SCHEMA out; CREATE TABLE " + root + " (id bigint, category text, name text) PARTITION BY RANGE (id); " +
		"CREATE TABLE stem PARTITION OF " + root + " DEFAULT PARTITION BY RANGE (id); CREATE TABLE products PARTITION OF stem (PRIMARY KEY (id)) DEFAULT; ALTER PUBLICATION shop SET TABLE " + root
}

// TestWhatIsUndoneBetweenTwoLooksIsSeen has changes of the catalogue that are undone before somebody looks, as a rule.
func TestWhatIsUndoneBetweenTwoLooksIsSeen(t *testing.T) {
	t.Parallel()
	t.Run("a partition", func(t *testing.T) {
		t.Parallel()
		w := newPartitionedWorld(t)
		w.exec("DROP PUBLICATION shop; CREATE PUBLICATION shop FOR ALL TABLES")
		f, _ := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.Reads(1, "one")
		w.exec("ALTER TABLE products DETACH PARTITION p1")
		w.exec("UPDATE p1 SET name = 'uno'")
		w.reads(w.end())
		w.exec("ALTER TABLE products ATTACH PARTITION p1 FOR VALUES FROM (1) TO (100)")
		w.CatchUp(f)
		w.Reads(1, "uno")
	})
	t.Run("a table in place of one", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		w.exec("CREATE TABLE anew (id bigint PRIMARY KEY, category text, name text); INSERT INTO anew VALUES (1, 'a', 'new')")
		f, _ := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.exec("ALTER TABLE products RENAME TO old; ALTER TABLE anew RENAME TO products")
		w.Reads(1, "new")
		w.exec("ALTER TABLE products RENAME TO anew; ALTER TABLE old RENAME TO products")
		w.CatchUp(f)
		w.Reads(1, "one")
	})
}

// end is the end of the log.
func (w *world) end() (lsn string) {
	w.Helper()
	w.ask(&lsn, "SELECT pg_current_wal_insert_lsn()::text")
	return lsn
}

// reads waits until the feed has read up to a position.
func (w *world) reads(until string) {
	w.Helper()
	end, err := pglogrepl.ParseLSN(until)
	expect.ErrorIs(w, err)
	w.Await("the feed has read up to "+until, func() bool { return w.confirmed(w.Context()) >= uint64(end) })
}

// TestWhateverASessionSetsItsChangesAreRead has what is not yet committed when it is logged, settings of sessions, and tables that others truncate.
func TestWhateverASessionSetsItsChangesAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t, "max_prepared_transactions=5").Address)
	w.exec("CREATE TABLE lines (id bigint PRIMARY KEY, product bigint REFERENCES products ON DELETE CASCADE ON UPDATE CASCADE)")
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'start'), (2, 'a', 'start')")
	for _, step := range []string{
		"BEGIN; UPDATE products SET name = '%'; PREPARE TRANSACTION 'two'|COMMIT PREPARED 'two'",
		"BEGIN; UPDATE products SET name = '%'; PREPARE TRANSACTION 'two'|SELECT pg_logical_emit_message(true, 'x', 'y')|COMMIT PREPARED 'two'",
		"BEGIN; SAVEPOINT a; UPDATE products SET name = 'no'; ROLLBACK TO a; UPDATE products SET name = '%'; RELEASE a; COMMIT",
		"BEGIN; SET LOCAL session_replication_role = replica; UPDATE products SET name = '%'; COMMIT",
		"BEGIN; SET LOCAL search_path = ''; UPDATE public.products SET name = '%'; COMMIT",
		"BEGIN; SET LOCAL timezone = 'Asia/Kathmandu'; SET LOCAL datestyle = 'SQL, DMY'; SET LOCAL client_encoding = 'LATIN1'; UPDATE products SET name = '%'; COMMIT",
		"BEGIN; SET LOCAL default_transaction_isolation = 'serializable'; UPDATE products SET name = '%'; COMMIT",
		"BEGIN; UPDATE products SET name = 'no'; COMMIT; BEGIN; UPDATE products SET id = id + 10; UPDATE products SET id = id - 10, name = '%'; COMMIT",
		"DO $$ BEGIN FOR n IN 1..50 LOOP BEGIN UPDATE products SET name = '%'; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
		"TRUNCATE products CASCADE; INSERT INTO products VALUES (1, 'a', '%')",
		"BEGIN; TRUNCATE lines, products; COPY products FROM PROGRAM 'printf \"1\\ta\\t%\\n\"'; COMMIT",
		"WITH gone AS (DELETE FROM products RETURNING *) SELECT count(*) FROM gone|INSERT INTO products VALUES (1, 'a', '%') ON CONFLICT (id) DO NOTHING",
		"MERGE INTO products p USING (VALUES (1, '%')) AS v(id, name) ON p.id = v.id WHEN MATCHED THEN UPDATE SET name = v.name",
		"VACUUM FULL products|CLUSTER products USING products_pkey|UPDATE products SET name = '%'",
		"ALTER TABLE products REPLICA IDENTITY NOTHING|INSERT INTO products VALUES (5, 'a', 'x')|ALTER TABLE products REPLICA IDENTITY FULL|UPDATE products SET name = '%'",
	} {
		w.CatchUp(f)
		got, _ := w.Products.Get(t.Context(), 1) // it is remembered now
		want := "n" + strings.Repeat("+", len(got))
		if len(want) > 20 {
			want = "n"
		}
		for statement := range strings.SplitSeq(strings.ReplaceAll(step, "%", want), "|") {
			w.exec(statement)
		}
		w.CatchUp(f)
		w.Reads(1, want)
		if t.Failed() {
			t.Fatal(step)
		}
	}
}

// TestADatabaseThatForgetsCommitsInvalidatesTheKindsWhole has servers that come back with older data, and with the slot.
func TestADatabaseThatForgetsCommitsInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string // of the server that comes back
		write string            // before a feed looks
		says  string
	}{
		"a backup is put back": {says: "the log is shorter than it was"},
		"a standby is promoted": { // which has another timeline, and soon as much of a log
			files: map[string]string{"recovery.signal": "", "postgresql.auto.conf": "restore_command = 'false'\n"},
			write: "CREATE TABLE filler AS SELECT n FROM generate_series(1, 100000) AS n", says: "another feed has confirmed its position",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			data := filepath.Join(filepath.Dir(server.Socket), "data")
			shell := func(name string, args ...string) {
				if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v", out, err)
				}
			}
			w := newWorld(t, server.Address)
			f, stop := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUp(f)
			server.Kill()
			shell("cp", "-a", data, data+".old")
			server.Start()
			w.pool.Reset()
			w.exec("UPDATE products SET name = 'uno'")
			w.CatchUpInTheEnd(f)
			w.Reads(1, "uno")
			stop()
			server.Kill()
			shell("rm", "-r", data)
			shell("mv", data+".old", data)
			for name, text := range c.files {
				expect.ErrorIs(t, os.WriteFile(filepath.Join(data, name), []byte(text), 0o666))
			}
			server.Start()
			w.pool.Reset()
			w.Await("it is no standby any more", func() bool {
				var standby bool
				return w.pool.QueryRow(t.Context(), "SELECT pg_is_in_recovery()").Scan(&standby) == nil && !standby
			})
			w.exec("SELECT 1;" + c.write)
			f, _ = w.run(w.config())
			w.CatchUp(f)
			w.Reads(1, "one")
			w.Logs(c.says)
		})
	}
}

func TestSettingsOfARoleStopNothing(t *testing.T) {
	t.Parallel()
	for i, setting := range []string{
		"default_transaction_read_only = on", "search_path = ''", "timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'", "bytea_output = 'escape'",
		"extra_float_digits = -3", "intervalstyle = 'iso_8601'", "client_encoding = 'LATIN1'", "default_transaction_isolation = 'serializable'",
		"standard_conforming_strings = off", "row_security = off", "jit = on", "session_replication_role = replica", "idle_session_timeout = '300ms'",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			role := fmt.Sprintf("reader%d_%s", i, w.slot)
			w.exec("CREATE ROLE " + role + " LOGIN REPLICATION; ALTER ROLE " + role + " SET " + setting)
			t.Cleanup(func() { _, _ = w.pool.Exec(context.Background(), "DROP ROLE "+role) }) // it may be in use
			cfg := w.config()
			cfg.Conn = strings.ReplaceAll(cfg.Conn, "user=test", "user="+role)
			f, _ := w.run(cfg)
			redistest.Await(t, "it checks itself", func() bool { // a machine that stands still for 300 ms ends a session
				return f.SelfCheck(t.Context()) == nil
			})
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUpInTheEnd(f)
			w.Reads(1, "one")
			w.exec("UPDATE products SET name = 'uno'")
			w.CatchUpInTheEnd(f)
			w.Reads(1, "uno")
		})
	}
}

// TestATransactionThatWasOpenWhenItsTableWasPublishedIsNotMissed has a table that a new version maps. The log does not have what was written before it was published.
func TestATransactionThatWasOpenWhenItsTableWasPublishedIsNotMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Address) // which has no other transactions
	w.exec("CREATE TABLE notes (id bigint PRIMARY KEY, product bigint); ALTER PUBLICATION shop SET TABLE notes")
	old, stop := w.run(w.config(feedtest.Notes("public.notes", w.Products)))
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(old)
	tx, err := w.pool.Begin(t.Context())
	expect.ErrorIs(t, err)
	_, err = tx.Exec(t.Context(), "UPDATE products SET name = 'uno'")
	expect.ErrorIs(t, err)
	w.exec("ALTER PUBLICATION shop ADD TABLE products")
	stop()
	f, _ := w.run(w.config(feedtest.Notes("public.notes", w.Products), w.Rows("public.products")))
	w.CatchUp(f)
	w.Reads(1, "one")
	expect.ErrorIs(t, tx.Commit(t.Context()))
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.exec("UPDATE products SET name = 'eins'")
	w.CatchUp(f)
	w.Reads(1, "eins")
}

func TestManyFeedsReadOneDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Address)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	feedtest.Many(w.Shop, "public.products", func(name string, guard *cacheguard.Guard, table cdc.Table) (feedtest.Feed, error) {
		cfg := w.config(table)
		cfg.Slot, cfg.Guards = name, []*cacheguard.Guard{guard}
		return New(cfg)
	}, func() { w.exec("UPDATE products SET name = 'uno'") })
}
