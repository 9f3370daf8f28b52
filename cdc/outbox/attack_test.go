package outbox

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// TestWhatChangesValuesWithoutTriggersInvalidatesTheKindsWhole has statements after which a query returns other values, and for which no trigger fires.
func TestWhatChangesValuesWithoutTriggersInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	again := func(d Dialect) string { return strings.Join(Triggers(d, "products", "id", "category"), "|") }
	swap := "ALTER TABLE products RENAME COLUMN name TO was|ALTER TABLE products RENAME COLUMN other TO name"
	for name, c := range map[string]struct {
		on              Dialect
		make, sql, want string
	}{
		"a type with USING":                    {PostgreSQL, "", "ALTER TABLE products ALTER COLUMN name TYPE text USING upper(name)", "ONE"},
		"swapped names in PostgreSQL":          {PostgreSQL, "ALTER TABLE products ADD COLUMN other text DEFAULT 'new'", swap, "new"},
		"swapped names in MariaDB":             {MySQL, "ALTER TABLE products ADD COLUMN other varchar(20) DEFAULT 'new'", swap, "new"},
		"swapped names in SQLite":              {SQLite, "ALTER TABLE products ADD COLUMN other text DEFAULT 'new'", swap, "new"},
		"triggers that are made anew, MariaDB": {MySQL, "", "DROP TRIGGER cacheguard_products_update|UPDATE products SET name = 'uno'|" + again(MySQL), "uno"},
		"triggers that are made anew, SQLite":  {SQLite, "", "DROP TRIGGER cacheguard_products_update|UPDATE products SET name = 'uno'|" + again(SQLite), "uno"},
		"triggers that were off": {PostgreSQL, "", "ALTER TABLE products DISABLE TRIGGER ALL|UPDATE products SET name = 'uno'|" +
			"ALTER TABLE products ENABLE ALWAYS TRIGGER cacheguard_products_row|ALTER TABLE products ENABLE ALWAYS TRIGGER cacheguard_products_truncate", "uno"},
		"a partition that is detached": {PostgreSQL, "DROP TABLE products|CREATE TABLE products (id bigint PRIMARY KEY, category text, name text) PARTITION BY RANGE (id)|" +
			"CREATE TABLE few PARTITION OF products FOR VALUES FROM (0) TO (100)|" + again(PostgreSQL), "ALTER TABLE products DETACH PARTITION few", ""},
		"a partition that takes the place of the table": {MySQL, "CREATE TABLE parts (id bigint PRIMARY KEY, category varchar(20), name varchar(20)) PARTITION BY RANGE (id) (PARTITION few VALUES LESS THAN (100))|INSERT INTO parts VALUES (1, 'a', 'uno')",
			"ALTER TABLE parts EXCHANGE PARTITION few WITH TABLE products", "uno"},
		"a table that takes the place of a partition": {MySQL, "CREATE TABLE plain LIKE products|INSERT INTO plain VALUES (1, 'a', 'uno')|ALTER TABLE products PARTITION BY RANGE (id) (PARTITION few VALUES LESS THAN (100))",
			"ALTER TABLE products EXCHANGE PARTITION few WITH TABLE plain", "uno"},
		"TRUNCATE, MariaDB":            {MySQL, "", "TRUNCATE TABLE products", ""},
		"a table that a crash empties": {PostgreSQL, "ALTER TABLE products SET UNLOGGED", "crash", ""},
		"a rebuild, as SQLite's manual has it": {SQLite, "", "PRAGMA foreign_keys = OFF|BEGIN|CREATE TABLE anew (id integer PRIMARY KEY, category text, name text)|INSERT INTO anew SELECT id, category, 'new' FROM products|" +
			"DROP TABLE products|ALTER TABLE anew RENAME TO products|" + again(SQLite) + "|COMMIT", "new"},
	} {
		for _, when := range []string{"while it runs", "while none runs"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c.on, shared.Client(t))
				var crash func()
				if c.sql == "crash" {
					server := servers.StartPostgres(t, func(address string) bool { return answers("pgx", address) })
					w = newWorldAt(t, c.on, server.Address, shared.Client(t))
					crash = func() { server.Kill(); server.Start() }
				}
				w.db.SetMaxIdleConns(0) // as connections remember the columns of their queries
				s := &schema{world: w}
				if c.make != "" {
					expect.ErrorIs(t, s.attempt(c.make))
				}
				f, stop := w.run(w.config())
				w.exec("INSERT INTO products (id, category, name) VALUES (1, 'a', 'one')")
				w.CatchUp(f)
				w.Reads(1, "one")
				if when == "while none runs" {
					stop()
				}
				if crash != nil {
					crash()
				} else {
					expect.ErrorIs(t, s.attempt(c.sql))
				}
				if when == "while none runs" {
					f, _ = w.run(w.config())
				}
				w.CatchUpInTheEnd(f)
				w.Reads(1, c.want)
			})
		}
	}
}

// TestAColumnThatIsRenamedFailsNoWrite is about the triggers that name it.
func TestAColumnThatIsRenamedFailsNoWrite(t *testing.T) {
	everywhere(t, func(w *world) {
		f, _ := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.CatchUp(f)
		w.Reads(1, "one")
		w.exec("ALTER TABLE products RENAME COLUMN category TO kind")
		w.exec("UPDATE products SET name = 'uno'")
		w.CatchUp(f)
		w.Reads(1, "uno")
	})
}

// TestWhateverASessionSetsItsChangesAreNoted has keys with quotes, backslashes and letters, written in the modes of sessions.
func TestWhateverASessionSetsItsChangesAreNoted(t *testing.T) {
	everywhere(t, func(w *world) {
		s := &schema{world: w}
		name := `o'd"d\ grüße`
		table := w.dialect.quote1(name)
		w.exec("CREATE TABLE " + table + " (id bigint PRIMARY KEY, name varchar(20))")
		for _, statement := range Triggers(w.dialect, name, "id") {
			w.exec(statement)
		}
		cfg := w.config()
		cfg.Tables = append(cfg.Tables, feedtest.ByID(name, w.Products))
		f, _ := w.run(cfg)
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		expect.ErrorIs(w, f.SelfCheck(w.Context()))
		modes := map[Dialect][]string{
			PostgreSQL: {"SET standard_conforming_strings = off", "SET search_path = ''", "SET client_encoding = 'LATIN1'", "SET session_replication_role = replica", "SET default_transaction_isolation = 'serializable'"},
			MySQL:      {"SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = 'STRICT_ALL_TABLES'", "SET NAMES latin1", "SET time_zone = '+05:45'", "SET tx_isolation = 'SERIALIZABLE'"},
			SQLite:     {"PRAGMA foreign_keys = ON", "PRAGMA recursive_triggers = ON"},
		}[w.dialect]
		reset := map[Dialect]string{PostgreSQL: "|RESET ALL", MySQL: "|SET sql_mode = DEFAULT|SET NAMES utf8mb4|SET time_zone = DEFAULT|SET tx_isolation = DEFAULT"}[w.dialect]
		for _, mode := range modes {
			w.CatchUp(f)
			rows := f.Stats().Rows
			qualified := map[bool]string{true: "public.products", false: "products"}[w.dialect == PostgreSQL]
			expect.ErrorIs(w, s.attempt(mode+"|UPDATE "+qualified+" SET name = 'uno'"+reset))
			w.CatchUp(f)
			if f.Stats().Rows == rows {
				w.Errorf("no row was read after %s", mode)
			}
		}
		rows := f.Stats().Rows
		w.exec("INSERT INTO " + table + " VALUES (2, 'two')")
		w.CatchUp(f)
		expect.Equal(w, "rows of the table with an odd name", f.Stats().Rows-rows, 1)
		expect.Equal(w, "rows without keys", f.Stats().Unmapped, 0)
	})
}

// TestATableThatChangesWithoutItsTriggersIsATroubleAndIsInvalidatedWhole has tables of MariaDB that are a view of others, or that forget their rows.
func TestATableThatChangesWithoutItsTriggersIsATroubleAndIsInvalidatedWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ make, sql, mend string }{
		"a MERGE table over it": {"ALTER TABLE products ENGINE = MyISAM", "CREATE TABLE merged (id bigint, category varchar(20), name varchar(20), PRIMARY KEY (id)) ENGINE = MERGE UNION = (products) INSERT_METHOD = LAST|" +
			"UPDATE merged SET name = 'uno'", "DROP TABLE merged"},
		"one in memory": {"", "ALTER TABLE products ENGINE = MEMORY|UPDATE products SET name = 'uno'", "ALTER TABLE products ENGINE = InnoDB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, MySQL, shared.Client(t))
			s := &schema{world: w}
			if c.make != "" {
				w.exec(c.make)
			}
			f, err := New(w.db, w.config())
			expect.ErrorIs(t, err)
			f.every = 100 * time.Millisecond
			feedtest.Run(w.Shop, f, nil)
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUp(f)
			expect.ErrorIs(t, f.SelfCheck(t.Context()))
			w.Reads(1, "one")
			expect.ErrorIs(t, s.attempt(c.sql))
			feedtest.Says(t, f.SelfCheck(t.Context()), "table products", "without its triggers")
			w.Await("it is a trouble", func() bool { return f.Stats().Err != nil })
			w.Reads(1, "uno")
			w.exec(c.mend)
			w.CatchUpInTheEnd(f)
			expect.ErrorIs(t, f.SelfCheck(t.Context()))
		})
	}
}

// TestAUserWhoDoesNotSeeThatTablesArePartitionsIsTold has one without the right PROCESS.
func TestAUserWhoDoesNotSeeThatTablesArePartitionsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, MySQL, shared.Client(t))
	w.exec("CREATE TABLE parts (id bigint PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2")
	w.exec("CREATE USER `" + w.Prefix + "`")
	w.exec("GRANT ALL ON " + w.source[strings.LastIndex(w.source, "/")+1:] + ".* TO `" + w.Prefix + "`")
	db, err := sql.Open("mysql", strings.Replace(w.source, "root", w.Prefix, 1))
	expect.ErrorIs(t, err)
	defer db.Close()
	f, err := New(db, w.config())
	expect.ErrorIs(t, err)
	feedtest.Says(t, f.SelfCheck(t.Context()), "EXCHANGE PARTITION", "GRANT PROCESS")
}

// TestATextThatIsNoUTF8IsNotedAsItIs has keys of SQLite, which takes any bytes for a text, in both of its encodings.
func TestATextThatIsNoUTF8IsNotedAsItIs(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"UTF-8", "UTF-16le"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, SQLite, shared.Client(t))
			if encoding != "UTF-8" {
				w.source = strings.Replace(w.source, "/db?", "/db16?_pragma=encoding('"+encoding+"')&", 1)
				db, err := sql.Open("sqlite", w.source)
				expect.ErrorIs(t, err)
				defer db.Close()
				w.db = db
				for _, statement := range append(CreateTable(SQLite), "CREATE TABLE products (id bigint PRIMARY KEY)") {
					w.exec(statement)
				}
			}
			w.exec("CREATE TABLE texts (k text)")
			for _, statement := range Triggers(SQLite, "texts", "k") {
				w.exec(statement)
			}
			var mu sync.Mutex
			var got []string
			cfg := w.config()
			cfg.Tables = []cdc.Table{{Name: "texts", Changed: func(c cdc.Change) cacheguard.Changes {
				if k, err := c.New.String("k"); err == nil && !c.Committed.IsZero() {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, k)
				}
				return cacheguard.Changes{}
			}}}
			f, _ := w.run(cfg)
			want := []string{"plain", "grüße €😀", "a\x00b", "nul\x00\u00fc", ""}
			if encoding == "UTF-8" {
				want = append(want, "\xff", "a\x80", "\xc3", "a\x00\xff", "\xed\xa0\x80")
			}
			for _, text := range want {
				_, err := w.db.ExecContext(t.Context(), "INSERT INTO texts VALUES (?)", text)
				expect.ErrorIs(t, err)
			}
			w.CatchUp(f)
			mu.Lock()
			defer mu.Unlock()
			expect.Equal(t, "keys", fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
			expect.Equal(t, "rows without keys", f.Stats().Unmapped, 0)
		})
	}
}
