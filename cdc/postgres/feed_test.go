package postgres

import (
	"context"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestWhatIsWrittenPastTheCacheIsReadAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.Reads(2, "two")
	w.Reads(3, "")
	w.exec("UPDATE products SET name = 'uno' WHERE id = 1")
	w.exec("DELETE FROM products WHERE id = 2")
	w.exec("INSERT INTO products VALUES (3, 'a', 'three')")
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.Reads(2, "")
	w.Reads(3, "three")
	s := f.Stats()
	expect.Equal(t, "rows", s.Rows, 5)
	expect.Equal(t, "transactions", s.Transactions, 4)
	expect.Equal(t, "reading", s.Reading, true)
	expect.Equal(t, "trouble", s.Err, nil)
}

func TestAKeyThatChangesInvalidatesTheOldOneAndTheNewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.Reads(7, "")
	w.exec("UPDATE products SET id = 7 WHERE id = 1")
	w.CatchUp(f)
	w.Reads(1, "")
	w.Reads(7, "one")
}

func TestWhatIsRolledBackInvalidatesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.Reads(2, "two")
	w.exec("BEGIN; UPDATE products SET name = 'x'; ROLLBACK")
	w.exec("BEGIN; UPDATE products SET name = 'uno' WHERE id = 1; SAVEPOINT s; UPDATE products SET name = 'x' WHERE id = 2; ROLLBACK TO s; COMMIT")
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.Keeps(2, "two")
}

func TestATransactionIsOneBatchWithoutRepetitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.exec("BEGIN; INSERT INTO products VALUES (1, 'a', 'one'); UPDATE products SET name = 'two'; UPDATE products SET name = 'three'; COMMIT")
	w.CatchUp(f)
	s := f.Stats()
	expect.Equal(t, "rows", s.Rows, 3)
	expect.Equal(t, "transactions", s.Transactions, 1)
	expect.Equal(t, "invalidations", s.Invalidations, 1)
}

func TestALargeTransactionIsInvalidatedInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("INSERT INTO products SELECT n, 'a', 'old' FROM generate_series(1, 25000) n")
	f, _ := w.run(w.config())
	w.CatchUp(f)
	for _, id := range []int64{1, 12_500, 25_000} {
		w.Reads(id, "old")
	}
	w.exec("UPDATE products SET name = 'new'")
	w.CatchUp(f)
	for _, id := range []int64{1, 12_500, 25_000} {
		w.Reads(id, "new")
	}
	s := f.Stats()
	expect.Equal(t, "rows", s.Rows, 25_000)
	expect.Equal(t, "transactions", s.Transactions, 1)
	expect.Equal(t, "invalidations", s.Invalidations, 25_000)
}

func TestTruncateInvalidatesTheKindWholeAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
	w.CatchUp(f)
	before := f.Stats().Whole
	w.Reads(1, "one")
	if err := w.Guard.Invalidate(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	other := func() (n int) {
		_, err := cacheguard.Get(t.Context(), w.Guard, "other", func(context.Context) (int, error) { n++; return 1, nil })
		expect.ErrorIs(t, err)
		return n
	}
	other()
	w.Await("the other entry is stored", func() bool { return other() == 0 })
	w.exec("BEGIN; TRUNCATE products; INSERT INTO products VALUES (2, 'b', 'dos'); COMMIT")
	w.CatchUp(f)
	w.Reads(1, "")
	w.Reads(2, "dos")
	expect.Equal(t, "loads of another kind", other(), 0)
	expect.Equal(t, "whole kinds", f.Stats().Whole-before, 1)
}

func TestARowThatMovesInvalidatesBothTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.exec("ALTER TABLE products REPLICA IDENTITY FULL")
	byCategory := cdc.Table{
		Name: "public.products", Kinds: []cdc.Kind{w.Products},
		Changed: func(c cdc.Change) (changes cacheguard.Changes) {
			for _, row := range []cdc.Row{c.Old, c.New} {
				if !row.IsZero() {
					category, _ := row.String("category") // the feed has the error
					changes.Tags = append(changes.Tags, "category:"+category)
				}
			}
			return changes
		},
	}
	f, _ := w.run(w.config(byCategory))
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'b', 'two'), (3, 'c', 'three')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.Reads(2, "two")
	w.Reads(3, "three")
	w.exec("UPDATE products SET category = 'b', name = 'uno' WHERE id = 1")
	w.CatchUp(f)
	loads := w.Loads.Load()
	w.Reads(1, "uno")
	w.Reads(2, "two")
	expect.Equal(t, "loads of the entries with one of the tags", w.Loads.Load()-loads, 2)
	w.Keeps(3, "three")
}

func TestAColumnThatTheLogLeavesOutInvalidatesTheKindWholeAndStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	byCategory := cdc.Table{Name: "public.products", Kinds: []cdc.Kind{w.Products}, Changed: func(c cdc.Change) cacheguard.Changes {
		category, _ := c.Old.String("category") // the feed has the error
		return cacheguard.Changes{Tags: []string{"category:" + category}}
	}}
	f, _ := w.run(w.config(byCategory))
	feedtest.Says(t, f.SelfCheck(t.Context()), "public.products", "column category", "ALTER TABLE public.products REPLICA IDENTITY FULL")
	expect.ErrorIs(t, f.SelfCheck(t.Context()), cdc.ErrNotLogged)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (2, 'a', 'two')")
	w.CatchUp(f)
	w.Reads(1, "one")
	whole, unmapped := f.Stats().Whole, f.Stats().Unmapped
	w.exec("UPDATE products SET name = 'uno' WHERE id = 1")
	w.CatchUp(f)
	w.Reads(1, "uno")
	expect.Equal(t, "whole kinds", f.Stats().Whole-whole, 1)
	expect.Equal(t, "rows without keys", f.Stats().Unmapped-unmapped, 1)
	expect.ErrorIs(t, f.Stats().Err)
	w.Logs("column category")
	w.exec("ALTER TABLE products REPLICA IDENTITY FULL")
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	w.CatchUp(f)
	unmapped = f.Stats().Unmapped
	w.exec("UPDATE products SET name = 'dos' WHERE id = 2")
	w.CatchUp(f)
	w.Reads(2, "dos")
	expect.Equal(t, "rows without keys, when it is mended", f.Stats().Unmapped-unmapped, 0)
}

func TestPartitionsCountAsTheirTable(t *testing.T) {
	t.Parallel()
	w := newPartitionedWorld(t)
	f, _ := w.run(w.config())
	w.CatchUp(f)
	w.exec(`CREATE TABLE p2 PARTITION OF products FOR VALUES FROM (100) TO (200)`)
	w.Reads(1, "")
	w.Reads(101, "")
	w.exec("INSERT INTO products VALUES (1, 'a', 'one'), (101, 'a', 'more')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.Reads(101, "more")
	w.exec("DELETE FROM products WHERE id = 101")
	w.exec("UPDATE products SET id = 101 WHERE id = 1")
	w.CatchUp(f)
	w.Reads(1, "")
	w.Reads(101, "one")
	w.exec("TRUNCATE p2")
	w.CatchUp(f)
	w.Reads(101, "")
}

// newPartitionedWorld is one whose products are a partitioned table.
func newPartitionedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "")
	w.exec(`DROP TABLE products`)
	w.exec(`CREATE TABLE products (id bigint PRIMARY KEY, category text, name text) PARTITION BY RANGE (id)`)
	w.exec(`CREATE TABLE p1 PARTITION OF products FOR VALUES FROM (1) TO (100)`)
	w.exec(`ALTER PUBLICATION shop ADD TABLE products`)
	return w
}

func TestSchemaChangesAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("ALTER TABLE products ADD COLUMN stock int, DROP COLUMN category, ADD COLUMN category text DEFAULT 'z'")
	w.exec("UPDATE products SET name = 'uno', stock = 3")
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.exec("ALTER TABLE products RENAME TO goods")
	w.exec("UPDATE goods SET name = 'eins'")
	w.exec("ALTER TABLE goods RENAME TO products")
	w.CatchUp(f)
	w.Reads(1, "eins")
}
