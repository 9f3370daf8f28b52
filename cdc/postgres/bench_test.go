package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// benched is a feed that reads the changes of a table.
func benched(b *testing.B) (*pgxpool.Pool, *Feed) {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), shared.Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	name := fmt.Sprintf("bench_%d", databases.Add(1))
	if _, err := pool.Exec(b.Context(), fmt.Sprintf("CREATE TABLE %[1]s (id bigint PRIMARY KEY, name text); CREATE PUBLICATION %[1]s FOR TABLE %[1]s", name)); err != nil {
		b.Fatal(err)
	}
	guard, err := cacheguard.New(redistest.Start(b).Client(b), cacheguard.Config{Prefix: name})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = guard.Close() }) // always nil
	products, err := cacheguard.NewCache(guard, cacheguard.CacheConfig[int64, string]{
		Name: "product",
		Load: func(ctx context.Context, id int64) (name string, err error) {
			err = pool.QueryRow(ctx, "SELECT name FROM "+name+" WHERE id = $1", id).Scan(&name)
			return name, err
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	f, err := New(Config{
		Conn: shared.Addr(), Publication: name, Slot: name, Guards: []*cacheguard.Guard{guard},
		Tables: []cdc.Table{cdc.Rows("public."+name, products, func(r cdc.Row) (int64, error) { return r.Int64("id") })},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // owner: the benchmark; stop: cancel; joined below
		defer close(done)
		_ = f.Run(ctx) // that it was cancelled
	}()
	b.Cleanup(func() { cancel(); <-done })
	if err := f.CatchUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	return pool, f
}

// BenchmarkRows is how many rows of large transactions are invalidated in a second, from their commit on.
func BenchmarkRows(b *testing.B) {
	const rows = 20_000
	pool, f := benched(b)
	var took time.Duration
	for b.Loop() {
		if _, err := pool.Exec(b.Context(), fmt.Sprintf("INSERT INTO %s SELECT n, 'x' FROM generate_series(1, %d) n ON CONFLICT (id) DO UPDATE SET name = 'y'", f.cfg.Slot, rows)); err != nil {
			b.Fatal(err)
		}
		began := time.Now() // the database sends a transaction when it has committed
		if err := f.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
	}
	b.ReportMetric(float64(b.N)*rows/took.Seconds(), "rows/s")
}

// BenchmarkCommitToInvalidated is how long a row stays old after its commit, one at a time.
func BenchmarkCommitToInvalidated(b *testing.B) {
	pool, f := benched(b)
	var took []time.Duration
	for b.Loop() {
		if _, err := pool.Exec(b.Context(), "INSERT INTO "+f.cfg.Slot+" VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'"); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		for f.Stats().Rows < uint64(len(took)+1) {
			time.Sleep(20 * time.Microsecond)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
