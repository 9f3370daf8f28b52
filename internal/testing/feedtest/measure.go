package feedtest

import (
	"context"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// rowsAtOnce is how many rows a large transaction of a benchmark has.
const rowsAtOnce = 20_000

// Measured is a feed that a benchmark measures. It maps the table products, and runs.
type Measured struct {
	Feed     Feed
	Dialect  Dialect
	Exec     func(ctx context.Context, sql string) error
	Database interface{ Processor() time.Duration }
	Redis    *redistest.Server
}

// Rows measures how many rows of large transactions are invalidated in a second, from their commit on, and what a row costs the servers.
func (m *Measured) Rows(b *testing.B) {
	var took, database, redis, feed time.Duration
	rows := m.Feed.Stats().Rows
	for n := 0; b.Loop(); n++ {
		m.exec(b, "INSERT INTO products SELECT n, 'a', '"+strconv.Itoa(n)+"' FROM "+m.Dialect.series(rowsAtOnce-1)+" WHERE true "+m.Dialect.Upsert)
		began, db, rdb, own := time.Now(), m.Database.Processor(), m.redis(b), processor() // the database sends a transaction when it has committed
		for rows += rowsAtOnce; m.Feed.Stats().Rows < rows; {
			time.Sleep(time.Millisecond)
		}
		took, database, redis = took+time.Since(began), database+m.Database.Processor()-db, redis+m.redis(b)-rdb
		feed += processor() - own
	}
	n := float64(b.N) * rowsAtOnce
	b.ReportMetric(n/took.Seconds(), "rows/s")
	b.ReportMetric(micros(database)/n, "database-µs/row")
	b.ReportMetric(micros(redis)/n, "redis-µs/row")
	b.ReportMetric(micros(feed)/n, "feed-µs/row")
}

// Commits measures how long a row stays old after its commit, one at a time.
func (m *Measured) Commits(b *testing.B) {
	var took []time.Duration
	rows := m.Feed.Stats().Rows
	db, rdb := m.Database.Processor(), m.redis(b)
	for b.Loop() {
		m.exec(b, "INSERT INTO products VALUES (1, 'a', '"+strconv.Itoa(len(took))+"') "+m.Dialect.Upsert)
		began := time.Now()
		for rows++; m.Feed.Stats().Rows < rows; {
			time.Sleep(20 * time.Microsecond)
		}
		took = append(took, time.Since(began))
	}
	n := float64(len(took))
	slices.Sort(took)
	b.ReportMetric(micros(took[len(took)/2])/1000, "p50-ms")
	b.ReportMetric(micros(took[len(took)*99/100])/1000, "p99-ms")
	b.ReportMetric(micros(m.Database.Processor()-db)/n, "database-µs/commit") // with the write itself
	b.ReportMetric(micros(m.redis(b)-rdb)/n, "redis-µs/commit")
}

func (m *Measured) exec(b *testing.B, sql string) {
	b.Helper()
	if err := m.Exec(b.Context(), sql); err != nil {
		b.Fatal(err)
	}
}

// redis is the time of processors that Redis has used.
func (m *Measured) redis(b *testing.B) (used time.Duration) {
	info := m.Redis.Info("cpu")
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			b.Fatal(err)
		}
		used += time.Duration(seconds * float64(time.Second))
	}
	return used
}

// processor is the time of processors that this process has used.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// RunFor runs a feed until the benchmark ends, and returns when it has caught up.
func RunFor(b *testing.B, f Feed) {
	b.Helper()
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
}
