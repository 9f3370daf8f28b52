package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

// TestATriggerFailsNoWriteThatWouldSucceedWithoutIt has writes of those who know nothing of the outbox.
func TestATriggerFailsNoWriteThatWouldSucceedWithoutIt(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, PostgreSQL, shared.Client(t))
		f, _ := w.run(w.config())
		w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
		w.exec("CREATE ROLE " + w.name() + "; GRANT SELECT, UPDATE ON products TO " + w.name())
		w.CatchUp(f)
		for i, statements := range []string{
			"SET LOCAL search_path = ''; UPDATE public.products SET name = 'n0'",
			"SET LOCAL ROLE " + w.name() + "; UPDATE products SET name = 'n1'",
			"SET LOCAL session_replication_role = replica; UPDATE products SET name = 'n2'",
			"CREATE TEMP TABLE cacheguard_outbox (n int) ON COMMIT DROP; UPDATE products SET name = 'n3'",
		} {
			w.exec("BEGIN; " + statements + "; COMMIT")
			w.CatchUp(f)
			w.Reads(1, fmt.Sprintf("n%d", i))
		}
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, MySQL, shared.Client(t))
		w.exec("CREATE TABLE raw (id varbinary(20) PRIMARY KEY, n int)")
		for _, statement := range Triggers(MySQL, "raw", "id") {
			w.exec(statement)
		}
		whole := cdc.Table{Name: "raw", Kinds: []cdc.Kind{w.Products}, Changed: func(c cdc.Change) cacheguard.Changes {
			id, _ := c.New.String("id") // the feed has the error
			return cacheguard.Changes{Keys: []string{id}}
		}}
		cfg := w.config()
		cfg.Tables = append(cfg.Tables, whole)
		f, _ := w.run(cfg)
		w.CatchUp(f)
		feedtest.Says(t, f.SelfCheck(t.Context()), "raw", "column id", "varbinary")
		before := f.Stats().Whole
		w.exec("INSERT INTO raw VALUES (x'ff00', 1)")
		w.CatchUp(f)
		expect.Equal(t, "whole kinds", f.Stats().Whole-before, 1)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, SQLite, shared.Client(t))
		w.exec("CREATE TABLE raw (id blob PRIMARY KEY, n int)")
		for _, statement := range Triggers(SQLite, "raw", "id") {
			w.exec(statement)
		}
		var mu sync.Mutex
		var got string
		cfg := w.config()
		cfg.Tables = append(cfg.Tables, cdc.Table{Name: "raw", Changed: func(c cdc.Change) cacheguard.Changes {
			mu.Lock()
			defer mu.Unlock()
			got, _ = c.New.String("id") // the feed has the error
			return cacheguard.Changes{}
		}})
		f, _ := w.run(cfg)
		w.exec("INSERT INTO raw VALUES (x'ff00', 1)")
		w.CatchUp(f)
		mu.Lock()
		defer mu.Unlock()
		expect.Equal(t, "the key", got, "\xff\x00")
		expect.Equal(t, "rows without keys", f.Stats().Unmapped, 0)
	})
}

// TestANumberOfSQLiteWithSeveralTextsIsNoText has floating-point numbers, of which SQLite and a driver have texts of their own.
func TestANumberOfSQLiteWithSeveralTextsIsNoText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, SQLite, shared.Client(t))
	w.exec("CREATE TABLE sizes (id real PRIMARY KEY, n int)")
	for _, statement := range Triggers(SQLite, "sizes", "id") {
		w.exec(statement)
	}
	keys := make(chan string, 2)
	cfg := w.config()
	cfg.Tables = []cdc.Table{{Name: "sizes", Changed: func(c cdc.Change) cacheguard.Changes {
		id, err := c.New.String("id")
		if err != nil {
			id = "refused"
		}
		keys <- id
		return cacheguard.Changes{}
	}}}
	f, _ := w.run(cfg)
	for value, refused := range map[string]bool{"1.5": false, "-0.25": false, "10": true, "1e20": true, "9e999": true, "-9e999": true, "9223372036854775808": true, "0.1 + 0.2": false} {
		w.exec("INSERT INTO sizes VALUES (" + value + ", 1)")
		w.CatchUp(f)
		var want string
		expect.ErrorIs(t, w.db.QueryRowContext(t.Context(), "SELECT id FROM sizes WHERE id = "+value).Scan(&want))
		if got := <-keys; got != want && got != "refused" || refused != (got == "refused") {
			t.Errorf("%s: the feed has %q, a query %q", value, got, want)
		}
	}
}

// name is the name of the database.
func (w *world) name() (name string) {
	w.Helper()
	if err := w.db.QueryRowContext(w.Context(), "SELECT current_database()").Scan(&name); err != nil {
		w.Fatal(err)
	}
	return name
}

func TestPartitionsAndChildrenHaveTriggersOrSelfCheckNamesThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, PostgreSQL, shared.Client(t))
	w.exec("DROP TABLE products; CREATE TABLE products (id bigint PRIMARY KEY, category text, name text) PARTITION BY RANGE (id)")
	w.exec("CREATE TABLE few PARTITION OF products FOR VALUES FROM (0) TO (100)")
	w.exec("CREATE TABLE base (id bigint PRIMARY KEY, product bigint); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (base)")
	mend := func() {
		for _, statement := range append(Triggers(PostgreSQL, "products", "id"), Triggers(PostgreSQL, "base", "product")...) {
			w.exec(statement)
		}
	}
	mend()
	cfg := w.config()
	cfg.Tables = append(cfg.Tables, feedtest.Notes("base", w.Products))
	f, _ := w.run(cfg)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("TRUNCATE few")
	w.CatchUp(f)
	w.Reads(1, "")
	rows := f.Stats().Rows
	w.exec("INSERT INTO child VALUES (1, 1)")
	w.CatchUp(f)
	expect.Equal(t, "rows of a child", f.Stats().Rows-rows, 1)
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	w.exec("CREATE TABLE more PARTITION OF products FOR VALUES FROM (100) TO (200); CREATE TABLE second (PRIMARY KEY (id)) INHERITS (base)")
	feedtest.Says(t, f.SelfCheck(t.Context()), "cacheguard_products_truncate on more", "cacheguard_base_row on second", "outbox.Triggers")
	mend()
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
}

func TestATableThatLosesItsTriggersIsATroubleAndItsKindsAreInvalidatedWhole(t *testing.T) {
	t.Parallel()
	for d, rebuild := range map[Dialect]string{
		SQLite:     "CREATE TABLE anew (id bigint PRIMARY KEY, category varchar(20), name varchar(20)); INSERT INTO anew SELECT * FROM products; DROP TABLE products; ALTER TABLE anew RENAME TO products",
		PostgreSQL: "CREATE TABLE anew AS SELECT * FROM products; DROP TABLE products; ALTER TABLE anew RENAME TO products",
		MySQL:      "RENAME TABLE products TO gone;CREATE TABLE products AS SELECT * FROM gone", // with the triggers
	} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, d, shared.Client(t))
			f, _ := w.run(w.config())
			w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
			w.CatchUp(f)
			w.Reads(1, "one")
			for _, statement := range strings.Split(rebuild, ";") {
				w.exec(statement)
			}
			w.exec("UPDATE products SET name = 'uno'")
			w.Await("it is a trouble", func() bool { return f.Stats().Err != nil })
			w.Reads(1, "uno")
			feedtest.Says(t, f.Stats().Err, "products has no trigger")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			feedtest.Says(t, f.CatchUp(ctx), "products has no trigger")
			for _, statement := range Triggers(d, "products", "id", "category") {
				w.exec(statement)
			}
			w.CatchUp(f)
			w.Await("the trouble is over", func() bool { return errors.Is(f.Stats().Err, nil) })
			w.exec("UPDATE products SET name = 'eins'")
			w.CatchUp(f)
			w.Reads(1, "eins")
		})
	}
}

func TestNoTwoTablesShareATrigger(t *testing.T) {
	t.Parallel()
	names := make(map[string]string)
	long := strings.Repeat("x", 60)
	for _, table := range []string{"a.b", "a_b", "a.b.c", "a_b.c", "a.b_c", long + "1", long + "2", strings.Repeat("ü", 30)} {
		name := trigger(table, "truncate")
		if other, twice := names[name]; twice || len(name) > 63 {
			t.Errorf("%s has trigger %s, as %q has", table, name, other)
		}
		names[name] = table
	}
	w := newWorld(t, PostgreSQL, shared.Client(t))
	w.exec("CREATE SCHEMA shop; CREATE TABLE shop.products (id bigint PRIMARY KEY); CREATE TABLE shop_products (id bigint PRIMARY KEY)")
	cfg := w.config()
	for _, table := range []string{"shop.products", "shop_products"} {
		for _, statement := range Triggers(PostgreSQL, table, "id") {
			w.exec(statement)
		}
		cfg.Tables = append(cfg.Tables, w.Rows(table))
	}
	f, _ := w.run(cfg)
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	w.exec("INSERT INTO shop.products VALUES (1); INSERT INTO shop_products VALUES (2)")
	w.CatchUp(f)
	expect.Equal(t, "rows", f.Stats().Rows, 2)
}
