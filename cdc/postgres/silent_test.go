package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestATableThatIsAttachedLaterIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`DROP PUBLICATION shop; DROP TABLE products; CREATE TABLE products (id bigint PRIMARY KEY, category text, name text) PARTITION BY RANGE (id)`)
	w.exec(`CREATE PUBLICATION shop FOR ALL TABLES`)
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "")
	w.exec("CREATE TABLE few (id bigint PRIMARY KEY, category text, name text)")
	w.exec("INSERT INTO few VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.exec("ALTER TABLE products ATTACH PARTITION few FOR VALUES FROM (1) TO (100)")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.exec("ALTER TABLE products DETACH PARTITION few")
	w.CatchUp(f)
	w.Reads(1, "")
}

func TestATableCountsForEachMappedTableThatItBelongsTo(t *testing.T) {
	t.Parallel()
	w := newPartitionedWorld(t)
	w.exec(`CREATE TABLE base (id bigint PRIMARY KEY, note text); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (base)`)
	w.exec(`ALTER PUBLICATION shop ADD TABLE base`) // and child
	var mu sync.Mutex
	counts := make(map[string]int)
	count := func(table string) cdc.Table {
		return cdc.Table{Name: table, Changed: func(c cdc.Change) cacheguard.Changes {
			mu.Lock()
			defer mu.Unlock()
			counts[table]++
			return cacheguard.Changes{}
		}}
	}
	f, _ := w.run(w.config(count("public.products"), count("public.p1"), count("public.base"), count("public.child")))
	w.CatchUp(f)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.exec("INSERT INTO child VALUES (1, 'x')")
	w.CatchUp(f)
	mu.Lock()
	defer mu.Unlock()
	expect.Equal(t, "calls", fmt.Sprint(counts), "map[public.base:1 public.child:1 public.p1:1 public.products:1]")
}

const (
	ownSchema = "CREATE SCHEMA s; CREATE TABLE s.products (id bigint PRIMARY KEY, category text, name text)"
	leaves    = "CREATE TABLE products (id bigint PRIMARY KEY, category text, name text) PARTITION BY RANGE (id); CREATE TABLE leaf PARTITION OF products DEFAULT"
)

// published are changes of what is published of a mapped table, and back: out before an UPDATE, whose rows are not in the log then, and in after it.
var published = map[string]struct{ make, table, out, in string }{
	"a schema": {"DROP TABLE products; " + ownSchema + "; ALTER PUBLICATION shop SET TABLES IN SCHEMA s", "s.products",
		"ALTER PUBLICATION shop DROP TABLES IN SCHEMA s", "ALTER PUBLICATION shop ADD TABLES IN SCHEMA s"},
	"a table":  {"", "public.products", "ALTER PUBLICATION shop DROP TABLE products", "ALTER PUBLICATION shop ADD TABLE products"},
	"a filter": {"", "public.products", "ALTER PUBLICATION shop SET TABLE products WHERE (id > 7)", "ALTER PUBLICATION shop SET TABLE products"},
	"columns":  {"", "public.products", "ALTER PUBLICATION shop SET TABLE products (id)", "ALTER PUBLICATION shop SET TABLE products"},
	"kinds of changes": {"", "public.products", "ALTER PUBLICATION shop SET (publish = 'insert')",
		"ALTER PUBLICATION shop SET (publish = 'insert, update, delete, truncate')"},
	"the publication": {"", "public.products", "DROP PUBLICATION shop", "CREATE PUBLICATION shop FOR TABLE products"},
	"all tables": {"DROP PUBLICATION shop; CREATE PUBLICATION shop FOR ALL TABLES", "public.products",
		"DROP PUBLICATION shop", "CREATE PUBLICATION shop FOR ALL TABLES"},
	"a leaf": {"DROP TABLE products; " + leaves + "; ALTER PUBLICATION shop SET TABLE leaf", "public.products",
		"ALTER PUBLICATION shop DROP TABLE leaf", "ALTER PUBLICATION shop ADD TABLE leaf"},
	"the schema of a leaf": {"DROP TABLE products; CREATE SCHEMA s; " + leaves + "; ALTER TABLE leaf SET SCHEMA s; ALTER PUBLICATION shop SET TABLES IN SCHEMA s", "public.products",
		"ALTER PUBLICATION shop DROP TABLES IN SCHEMA s", "ALTER PUBLICATION shop ADD TABLES IN SCHEMA s"},
	"a child": {"CREATE TABLE child (PRIMARY KEY (id)) INHERITS (products); ALTER PUBLICATION shop ADD TABLE child", "public.products",
		"ALTER PUBLICATION shop DROP TABLE ONLY child", "ALTER PUBLICATION shop ADD TABLE ONLY child"},
	"the log of a table": {"", "public.products", "ALTER PUBLICATION shop DROP TABLE products; ALTER TABLE products SET UNLOGGED", // else PostgreSQL refuses
		"ALTER TABLE products SET LOGGED; ALTER PUBLICATION shop ADD TABLE products"},
}

// publishes makes a world of one of them.
func publishes(t *testing.T, first, table string) (w *world, cfg Config) {
	t.Helper()
	t.Parallel()
	w = newWorld(t, "")
	if first != "" {
		w.exec(first)
	}
	w.exec("ALTER DATABASE " + w.slot + " SET search_path = public, s")
	w.pool.Reset()
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	return w, w.config(w.Rows(table))
}

func TestWhatIsPublishedIsWatched(t *testing.T) {
	t.Parallel()
	for name, c := range published {
		t.Run(name, func(t *testing.T) {
			w, cfg := publishes(t, c.make, c.table)
			f, _ := w.run(cfg)
			w.CatchUp(f)
			w.Reads(1, "one")
			w.exec(c.out)
			w.exec("UPDATE products SET name = 'uno'")
			w.exec(c.in)
			w.CatchUp(f)
			w.Reads(1, "uno")
		})
	}
}

func TestACatchUpSaysAtOnceThatATableIsNoLongerPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.exec("ALTER PUBLICATION shop DROP TABLE products")
	w.exec("UPDATE products SET name = 'uno'")
	w.Await("the slot is given up", func() (gone bool) {
		w.ask(&gone, "SELECT count(*) = 0 FROM pg_replication_slots WHERE slot_name = $1", w.slot)
		return gone
	})
	err := f.CatchUp(t.Context()) // which does not end before the test
	feedtest.Says(t, err, "publication shop", "products")
}

func TestWhatIsPublishedIsComparedWithWhatTheLastReaderSaw(t *testing.T) {
	t.Parallel()
	for name, c := range published {
		t.Run(name, func(t *testing.T) {
			w, cfg := publishes(t, c.make, c.table)
			f, stop := w.run(cfg)
			w.CatchUp(f)
			w.Reads(1, "one")
			stop()
			f, stop = w.run(cfg) // nothing has changed
			w.CatchUp(f)
			w.Keeps(1, "one")
			stop()
			w.exec(c.out)
			w.exec("UPDATE products SET name = 'uno'")
			w.exec(c.in)
			f, stop = w.run(cfg) // a new one, as after all processes have ended
			w.CatchUp(f)
			w.Reads(1, "uno")
			w.Logs("while no instance read")
			stop()
			f, _ = w.run(cfg) // which is known now
			w.CatchUp(f)
			w.Keeps(1, "uno")
		})
	}
}

// TestNobodyWaitsForAPositionThatSaysNothing has feeds that cannot read, or that do not read for this cache.
func TestNobodyWaitsForAPositionThatSaysNothing(t *testing.T) {
	t.Parallel()
	nothing := func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }
	for name, c := range map[string]struct {
		change func(w *world, cfg *Config)
		says   string
	}{
		"another database": {func(w *world, cfg *Config) {
			w.exec("CREATE DATABASE " + w.slot + "_2")
			cfg.Conn = strings.ReplaceAll(cfg.Conn, "dbname="+w.slot, "dbname="+w.slot+"_2")
			other := w.connect(cfg.Conn)
			if _, err := other.Exec(w.Context(), "CREATE TABLE products (id bigint PRIMARY KEY, name text); CREATE PUBLICATION shop FOR TABLE products"); err != nil {
				w.Fatal(err)
			}
		}, "of another database"},
		"another publication": {func(w *world, cfg *Config) {
			w.exec("CREATE PUBLICATION other FOR ALL TABLES")
			cfg.Publication = "other"
		}, "another feed"},
		"a table that is not published": {func(w *world, cfg *Config) {
			w.exec("CREATE TABLE prices (id bigint PRIMARY KEY)")
			cfg.Tables = []cdc.Table{{Name: "public.prices", Changed: nothing}}
		}, "does not have table public.prices"},
		"a table that the reader does not map": {func(w *world, cfg *Config) {
			w.exec("CREATE TABLE prices (id bigint PRIMARY KEY)")
			w.exec("CREATE PUBLICATION second FOR TABLE prices")
			cfg.Tables = append(cfg.Tables, cdc.Table{Name: "public.leaf", Changed: nothing})
		}, "does not map public.leaf"},
		"another Prefix": {func(w *world, cfg *Config) {
			guard, products := feedtest.NewCache(w, w.redis.Client(w), "other", pgx.ErrNoRows, feedtest.LoadNothing)
			cfg.Guards, cfg.Tables = []*cacheguard.Guard{guard}, []cdc.Table{feedtest.ByID("public.products", products)}
		}, "another feed"},
		"another Redis": {func(w *world, cfg *Config) {
			guard, products := feedtest.NewCache(w, redistest.Start(w).Client(w), w.slot, pgx.ErrNoRows, feedtest.LoadNothing)
			cfg.Guards, cfg.Tables = []*cacheguard.Guard{guard}, []cdc.Table{feedtest.ByID("public.products", products)}
		}, "another feed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.exec("CREATE TABLE leaf (id bigint PRIMARY KEY)")
			w.exec("ALTER PUBLICATION shop ADD TABLE leaf")
			reads, _ := w.run(w.config())
			w.CatchUp(reads)
			cfg := w.config()
			c.change(w, &cfg)
			second, err := New(cfg)
			expect.ErrorIs(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			feedtest.Says(t, second.CatchUp(ctx), c.says)
			if err := second.SelfCheck(ctx); !strings.Contains(name, "the reader does not map") { // which is so while a new version replaces an old one
				feedtest.Says(t, err, c.says)
			}
			w.CatchUp(reads)
		})
	}
}

func TestAPositionOfAnotherCacheIsNotGoneOnFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	stop()
	guard, products := feedtest.NewCache(t, w.redis.Client(t), "other", pgx.ErrNoRows, feedtest.LoadNothing)
	cfg := w.config(feedtest.ByID("public.products", products))
	cfg.Guards = []*cacheguard.Guard{guard}
	other, stop := w.run(cfg)
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(other)
	stop()
	f, _ = w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.Logs("another feed has confirmed its position")
}

func TestATableThatTheReaderBeforeDidNotMapIsInvalidatedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("CREATE TABLE notes (id bigint PRIMARY KEY, product bigint); ALTER PUBLICATION shop ADD TABLE notes")
	old, stop := w.run(w.config(feedtest.Notes("public.notes", w.Products)))
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(old)
	w.Reads(1, "one")
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(old)
	stop()
	f, _ := w.run(w.config(w.Rows("public.products"), feedtest.Notes("public.notes", w.Products)))
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.Logs("does not map their tables: public.products")
}

func TestDomainsHaveTheValuesOfTheirBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`CREATE DOMAIN raw AS bytea; CREATE DOMAIN code AS char(5); CREATE DOMAIN code2 AS code; CREATE DOMAIN flag AS bool; CREATE DOMAIN moment AS timestamptz;
		CREATE DOMAIN n AS int`)
	w.exec(`CREATE TABLE domains (id n PRIMARY KEY, raw raw, code code2, flag flag, at moment); ALTER PUBLICATION shop ADD TABLE domains`)
	var mu sync.Mutex
	var got string
	f, _ := w.run(w.config(cdc.Table{Name: "public.domains", Changed: func(c cdc.Change) cacheguard.Changes {
		id, _ := c.New.Int64("id") // the feed has the errors
		raw, _ := c.New.String("raw")
		code, _ := c.New.String("code")
		flag, _ := c.New.Bool("flag")
		at, _ := c.New.Time("at")
		mu.Lock()
		defer mu.Unlock()
		got = fmt.Sprintf("%d %q %q %t %d", id, raw, code, flag, at.Unix())
		return cacheguard.Changes{}
	}}))
	w.CatchUp(f)
	w.exec(`INSERT INTO domains VALUES (7, '\x00ff', 'ab', true, '1970-01-01 00:01:00+00')`)
	w.CatchUp(f)
	expect.Equal(t, "rows that could not be mapped", f.Stats().Unmapped, 0)
	mu.Lock()
	defer mu.Unlock()
	expect.Equal(t, "the row", got, `7 "\x00\xff" "ab" true 60`)
}

// TestEveryKindOfTheCatalogueIsDecidedAbout fails for a kind of table, publication or type that nobody has thought of.
func TestEveryKindOfTheCatalogueIsDecidedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec(`CREATE TABLE part (id int) PARTITION BY RANGE (id); CREATE INDEX ON part (id); CREATE VIEW v AS SELECT 1; CREATE MATERIALIZED VIEW m AS SELECT 1; CREATE SEQUENCE s;
		CREATE TYPE c AS (a int); CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE f (id int) SERVER s`)
	list := func(query string) (all []string) {
		rows, err := w.pool.Query(t.Context(), query)
		expect.ErrorIs(t, err)
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		expect.ErrorIs(t, err)
		return all
	}
	decided := func(what string, found []string, decided ...string) {
		t.Helper()
		for _, name := range found {
			if !slices.Contains(decided, name) {
				t.Errorf("nobody has decided about %s %s", what, name)
			}
		}
	}
	decided("kind of table", list("SELECT DISTINCT relkind::text FROM pg_class"), slices.Concat(slices.Collect(maps.Keys(kinds)), slices.Collect(maps.Keys(notRead)))...)
	decided("persistence of a table", list("SELECT DISTINCT relpersistence::text FROM pg_class"), "p", "u", "t")
	decided("form of a publication", list(`SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relname LIKE 'pg\\_publication%' AND c.relkind = 'r' AND a.attnum > 0`),
		"pg_publication.oid", "pg_publication.pubname", "pg_publication.pubowner", "pg_publication.puballtables", "pg_publication.pubinsert", "pg_publication.pubupdate",
		"pg_publication.pubdelete", "pg_publication.pubtruncate", "pg_publication.pubviaroot", "pg_publication_rel.oid", "pg_publication_rel.prpubid",
		"pg_publication_rel.prrelid", "pg_publication_rel.prqual", "pg_publication_rel.prattrs", "pg_publication_namespace.oid", "pg_publication_namespace.pnpubid",
		"pg_publication_namespace.pnnspid")
	decided("kind of type", list("SELECT DISTINCT typtype::text FROM pg_type"), "b", "c", "d", "e", "m", "p", "r") // p: no column has one
	decided("type", list("SELECT typname::text FROM pg_type WHERE typtype = 'b' AND typcategory <> 'A' AND oid < 16384"), slices.Concat(parsed, texts, others)...)
}

func TestALargeCatalogueIsLookedAtInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t, "max_locks_per_transaction=5000").Address)
	w.exec("DO $$ BEGIN FOR n IN 1..3000 LOOP EXECUTE 'CREATE TABLE many_' || n || ' (id int PRIMARY KEY)'; END LOOP; END $$")
	w.exec("DROP PUBLICATION shop; CREATE PUBLICATION shop FOR ALL TABLES")
	var tables []cdc.Table
	for n := range 3000 {
		tables = append(tables, w.Rows(fmt.Sprintf("public.many_%d", n+1)))
	}
	f, _ := w.run(w.config(tables...))
	w.CatchUp(f)
	began := time.Now()
	side, err := f.dial(t.Context())
	expect.ErrorIs(t, err)
	defer hangUp(side)
	if _, err := f.ready(t.Context(), side); err != nil { // which has a limit of 10 seconds
		t.Error(err)
	}
	t.Log("a look at 3,000 mapped tables takes", time.Since(began))
}

func TestWhatIsDetachedWhileTheConnectionIsBrokenIsSeen(t *testing.T) {
	t.Parallel()
	w := newPartitionedWorld(t)
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	stop()
	w.exec("ALTER TABLE products DETACH PARTITION p1")
	feedtest.Run(w.Shop, f, nil)
	w.CatchUp(f)
	w.Reads(1, "")
}
