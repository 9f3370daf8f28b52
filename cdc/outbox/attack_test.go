package outbox

import (
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
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
		"a rebuild, as SQLite's manual has it": {SQLite, "", "PRAGMA foreign_keys = OFF|BEGIN|CREATE TABLE anew (id integer PRIMARY KEY, category text, name text)|INSERT INTO anew SELECT id, category, 'new' FROM products|" +
			"DROP TABLE products|ALTER TABLE anew RENAME TO products|" + again(SQLite) + "|COMMIT", "new"},
	} {
		for _, when := range []string{"while it runs", "while none runs"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c.on, shared.Client(t))
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
				expect.ErrorIs(t, s.attempt(c.sql))
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
