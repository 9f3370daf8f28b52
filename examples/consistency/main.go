// Consistency changes prices while they are read through a cache, in several ways to keep cache and database in step, and
// counts how often a price was shown that a completed update had replaced.
//
// It needs nothing but Go. REDIS_URL and DATABASE_URL name a real Redis and a real PostgreSQL to use instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

// settings are what the flags say.
type settings struct {
	products int
	duration time.Duration
	between  time.Duration
	query    time.Duration
}

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "consistency", About: "Consistency counts stale reads of prices that change, with and without cacheguard.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.products, "products", 8, "`number` of products whose prices change")
			f.DurationVar(&s.duration, "duration", 1500*time.Millisecond, "how long each run takes")
			f.DurationVar(&s.between, "between", 10*time.Millisecond, "how long a writer pauses between two updates")
			f.DurationVar(&s.query, "query", 3*time.Millisecond, "how long a database query takes")
		},
		Short: map[string]string{"duration": "400ms"},
		Check: s.check,
		Run: func(ctx context.Context, out io.Writer) error {
			return sqldb.With(ctx, func(server *backends.RedisServer, db *sqldb.DB) error { return s.compare(ctx, out, server, db) })
		},
	}
}

func (s *settings) check() error {
	switch {
	case s.products < 1 || s.products > 10_000:
		return fmt.Errorf("-products: %d is not between 1 and 10000", s.products)
	case s.duration < 10*time.Millisecond || s.duration > time.Hour:
		return fmt.Errorf("-duration: %v is not between 10ms and 1h", s.duration)
	case s.between < time.Millisecond || s.between > s.duration:
		return fmt.Errorf("-between: %v is not between 1ms and -duration (%v)", s.between, s.duration)
	case s.query < 0 || s.query > time.Second:
		return fmt.Errorf("-query: %v is not between 0 and 1s", s.query)
	}
	return nil
}

// compare runs one pattern after the other.
func (s *settings) compare(ctx context.Context, out io.Writer, server *backends.RedisServer, db *sqldb.DB) error {
	_, _ = fmt.Fprintf(out, "%d instances x %d readers read the prices of %d products, and %d writers raise them.\n"+
		"The database is %s, %v a query, and ten times as much for one read in %d; the cache is %s.\n"+
		"A read is stale if it began after an update had returned, in any instance, and shows an older price.\n\n",
		instances, readers, s.products, instances, db, s.query, slow, server)
	var results []result
	for _, p := range patterns {
		r, err := stage{server, db, *s}.run(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		results = append(results, r)
	}
	return report(out, results)
}

func report(out io.Writer, results []result) (broken error) {
	rows := [][]string{{"", "updates", "reads", "stale", "for up to", "read p50", "p99", "update p50", "commands/call"}}
	for _, r := range results {
		wait := func(waits []time.Duration, share float64) string { return table.Millis(table.Quantile(waits, share)) }
		longest := "–"
		if r.stale > 0 {
			longest = table.Millis(r.longest)
		}
		rows = append(rows, []string{
			r.name, table.Count(len(r.updates)), table.Count(len(r.reads)), table.Count(r.stale), longest,
			wait(r.reads, 0.5), wait(r.reads, 0.99), wait(r.updates, 0.5),
			table.Hundredths(float64(r.commands) / float64(max(1, len(r.reads)+len(r.updates)))),
		})
		if r.promises && r.stale > 0 {
			broken = errors.Join(broken, fmt.Errorf("NOT AS PROMISED: %s: %d stale reads", r.name, r.stale))
		}
	}
	table.Write(out, rows)
	_, _ = fmt.Fprint(out, `
By hand, a reader that asked the database before a write stores the old price after the delete. A second delete takes it
away again, if the reader was faster; until then it is shown. A Guard lets nobody store what a write has overtaken.
Invalidate is enough unless the writer dies between the write and the Invalidate; an Update survives that too. But the
write of an Update must contain the commit: where that comes later, readers in between store the old price. An Intent
stands until the commit, wherever that is. Read locks are for reading several prices that belong together: they hold off
writers, and every read pays for that.
`)
	return broken
}
