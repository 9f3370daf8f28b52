// Chiapi is a small product API on chi, in three instances behind a proxy, whose pages are cached by the middleware. Open it,
// change a price, look at the metrics; or run it with -attack, which compares it under load with the same API uncached.
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
)

// settings are what the flags say.
type settings struct {
	port     int
	query    time.Duration
	attack   bool
	rate     int // requests a second
	duration time.Duration
}

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "chiapi", About: "Chiapi serves a product API from three instances, and compares it under load with and without a cache.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.port, "port", 8080, "`number` of the proxy's port; the instances have the next three (0: any)")
			f.DurationVar(&s.query, "query", 50*time.Millisecond, "how long a database query takes")
			f.BoolVar(&s.attack, "attack", false, "compare under load, and end")
			f.IntVar(&s.rate, "rate", 500, "`number` of requests a second, with -attack")
			f.DurationVar(&s.duration, "duration", 10*time.Second, "how long each of the two loads lasts, with -attack")
		},
		Short: map[string]string{"attack": "true", "rate": "200", "duration": "1500ms"},
		Check: s.check,
		Run: func(ctx context.Context, out io.Writer) error {
			return sqldb.With(ctx, func(server *backends.RedisServer, db *sqldb.DB) error {
				shop, err := openShop(ctx, db, s.query)
				if err != nil {
					return err
				}
				st := stage{server, db, shop}
				if s.attack {
					return s.compare(ctx, out, st)
				}
				return s.serve(ctx, out, st)
			})
		},
	}
}

func (s *settings) check() error {
	switch {
	case s.port < 0 || s.port > 65535-instances:
		return fmt.Errorf("-port: %d is not between 0 and %d", s.port, 65535-instances)
	case s.query < 0 || s.query > time.Second:
		return fmt.Errorf("-query: %v is not between 0 and 1s", s.query)
	case s.rate < 1 || s.rate > 10_000:
		return fmt.Errorf("-rate: %d is not between 1 and 10000", s.rate)
	case s.duration < time.Second || s.duration > time.Hour:
		return fmt.Errorf("-duration: %v is not between 1s and 1h", s.duration)
	}
	return nil
}

// serve runs the API until Ctrl-C.
func (s *settings) serve(ctx context.Context, out io.Writer, st stage) error {
	f, err := st.start(ctx, s.port, true)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "A product API in %d instances; the database is %s, %v a query; the cache is %s.\n\n"+
		"  %s/products/42     a product, fresh for %v and then replaced behind your back: reload it, and look at Cache-Status and Instance\n"+
		"  %s/categories/3    the products of a category\n", instances, st.db, s.query, st.redis, f.url, freshFor, f.url)
	for _, i := range f.instances {
		_, _ = fmt.Fprintf(out, "  %s/metrics         what an instance tells Prometheus\n", i.url)
	}
	_, _ = fmt.Fprintf(out, "\n  curl -i %s/products/42\n"+
		"  curl -X PUT '%s/products/42?cents=1' -i    # a new price, which every instance shows at once\n\nCtrl-C ends it.\n", f.url, f.url)
	<-ctx.Done()
	return f.stop()
}
