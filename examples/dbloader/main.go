// Dbloader wraps the repository that a read-heavy service has, with its users, products and lists, into one that caches:
// cached.go is all that it takes. On cacheguard.Cache it has 67 lines of code; with Get, and the keys, loaders and errors by
// hand, it had 92. Then the program lets visitors look at pages with either, and compares what the database got.
//
// It needs nothing but Go. REDIS_URL and DATABASE_URL name a real Redis and a real PostgreSQL to use instead.
package main

import (
	"context"
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
	visitors      int // of each of two instances
	pages         int // of each visitor
	pagesPerWrite int
	query         time.Duration
}

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "dbloader", About: "Dbloader compares a service's repository with the same one wrapped in a cache.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.visitors, "visitors", 20, "`number` of concurrent visitors of each of two instances")
			f.IntVar(&s.pages, "pages", 250, "`number` of pages that each visitor looks at")
			f.IntVar(&s.pagesPerWrite, "pages-per-write", 50, "`number` of pages to one write")
			f.DurationVar(&s.query, "query", 2*time.Millisecond, "how long a database query takes")
		},
		Short: map[string]string{"pages": "100"},
		Check: s.check,
		Run: func(ctx context.Context, out io.Writer) error {
			return sqldb.With(ctx, func(server *backends.RedisServer, db *sqldb.DB) error { return s.compare(ctx, out, server, db) })
		},
	}
}

func (s *settings) check() error {
	switch {
	case s.visitors < 1 || s.visitors > 100:
		return fmt.Errorf("-visitors: %d is not between 1 and 100", s.visitors)
	case s.pages < 1 || s.pages > 100_000:
		return fmt.Errorf("-pages: %d is not between 1 and 100000", s.pages)
	case s.pagesPerWrite < 1:
		return fmt.Errorf("-pages-per-write: %d is less than 1", s.pagesPerWrite)
	case s.query < 0 || s.query > time.Second:
		return fmt.Errorf("-query: %v is not between 0 and 1s", s.query)
	}
	return nil
}

// compare measures both repositories one after the other.
func (s *settings) compare(ctx context.Context, out io.Writer, server *backends.RedisServer, db *sqldb.DB) error {
	_, _ = fmt.Fprintf(out, "2 instances of a shop x %d visitors x %d pages: a user's name, with a product or a list of some.\n"+
		"Every %dth page or so somebody changes something, and looks whether the other instance shows it.\n"+
		"The database is %s, %v a query; the cache is %s.\n"+
		"The first pages, which fill the cache, do not count.\n\n",
		s.visitors, s.pages, s.pagesPerWrite, db, s.query, server)
	plain, err := s.measure(ctx, db, server, false)
	if err != nil {
		return err
	}
	wrapped, err := s.measure(ctx, db, server, true)
	if err != nil {
		return err
	}
	table.Write(out, rowsOf(plain, wrapped))
	if plain.stale+wrapped.stale > 0 {
		return fmt.Errorf("NOT AS PROMISED: the other instance showed old values after %d writes", plain.stale+wrapped.stale)
	}
	_, _ = fmt.Fprintf(out, "\nThe cache answers for %.0f of 100 queries, and no write was missed by the other instance.\n",
		100-100*float64(wrapped.queries)/float64(plain.queries))
	return nil
}

func rowsOf(plain, wrapped measured) [][]string {
	row := func(label string, of func(measured) string) []string { return []string{label, of(plain), of(wrapped)} }
	page := func(label string, share float64) []string {
		return row(label, func(m measured) string { return table.Millis(table.Quantile(m.pages, share)) })
	}
	return [][]string{
		{"", "Repository", "CachedRepository"},
		row("pages", func(m measured) string { return table.Count(len(m.pages)) }),
		row("writes", func(m measured) string { return table.Count(m.writes) }),
		row("database queries", func(m measured) string { return table.Count(m.queries) }),
		row("queries per page", func(m measured) string { return table.Hundredths(float64(m.queries) / float64(len(m.pages))) }),
		page("time of a page, p50", 0.50),
		page("time of a page, p99", 0.99),
		row("Redis commands per page", func(m measured) string { return table.Hundredths(float64(m.commands) / float64(len(m.pages))) }),
		row("old values after a write", func(m measured) string { return table.Count(m.stale) }),
	}
}
