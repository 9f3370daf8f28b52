// Flashsale sells a stock to a crowd, one to each user, from several instances of a shop at once: with a lock, without one, and
// with a stock in segments, and compares them. With -wrong it shows how the usual mistakes end, and with -lock all what each of
// the library's locks costs and survives; locks whose server is not installed are left out. docs/locks.md has a picture.
//
// It needs nothing but Go. REDIS_URL and DATABASE_URL name a real Redis and a real PostgreSQL to use instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

// settings are what the flags say.
type settings struct {
	stock   int
	clients int
	each    int // users of each client
	wrong   bool
	lock    string
	json    string
}

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "flashsale", About: "Flashsale compares ways to sell a stock to a crowd, one to each user.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.stock, "stock", 2000, "`number` of units to sell")
			f.IntVar(&s.clients, "clients", 100, "`number` of users at a time")
			f.IntVar(&s.each, "each", 20, "`number` of users one after the other, for each of these")
			f.BoolVar(&s.wrong, "wrong", false, "show wrong ways instead")
			f.StringVar(&s.lock, "lock", "", "sell under this `lock` instead: "+strings.Join(lockNames(), ", ")+"; its servers are started")
			f.StringVar(&s.json, "json", "", "with -lock, add the figures to this `file`, which go run ./bench/cmd/compare -from FILE -out DIR draws")
		},
		Short: map[string]string{"stock": "150", "clients": "20", "each": "10"},
		Check: s.check,
		Run: func(ctx context.Context, out io.Writer) error {
			return sqldb.With(ctx, func(server *backends.RedisServer, db *sqldb.DB) error { return s.compare(ctx, out, server, db) })
		},
	}
}

func (s *settings) check() error {
	switch {
	case s.stock < 1 || s.stock > 1_000_000:
		return fmt.Errorf("-stock: %d is not between 1 and 1000000", s.stock)
	case s.clients < 1 || s.clients > 200:
		return fmt.Errorf("-clients: %d is not between 1 and 200", s.clients)
	case s.each < 1 || s.each > 10_000:
		return fmt.Errorf("-each: %d is not between 1 and 10000", s.each)
	}
	if s.json != "" && s.lock == "" {
		return errors.New("-json: it needs -lock")
	}
	return checkLock(s.lock)
}

// compare holds one sale after the other.
func (s *settings) compare(ctx context.Context, out io.Writer, server *backends.RedisServer, db *sqldb.DB) error {
	_, _ = fmt.Fprintf(out, "%d instances of a shop sell %s units to %s users, %d at a time. Each may have one;\nbut one user in four clicks twice, at two instances at once.\n"+
		"The stock is in %s, the orders go to %s.\n",
		instances, table.Count(s.stock), table.Count(s.clients*s.each), s.clients, server, db)
	if s.lock != "" {
		return s.compareLocks(ctx, out, server, db)
	}
	ways := rightWays
	if s.wrong {
		ways = wrongWays
		_, _ = fmt.Fprintf(out, "Locks have a lease of %v. About %d of the sales take %v, as happens.\n", lease, stumbles, stumble)
	}
	_, _ = fmt.Fprintln(out)
	var results []result
	for _, w := range ways {
		r, err := stage{server, db, *s}.sell(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		results = append(results, r)
	}
	broken := report(out, results)
	if s.wrong {
		_, _ = fmt.Fprint(out, whyWrong)
	}
	return broken
}

const whyWrong = `
no lock        two look at the stock, both see 17, both write 16
sync.Mutex     the same, between instances
DEL            who comes back late deletes the lock of the next one, who then is not alone either
short lease    who comes back late writes what it saw before others sold
mutex          its lease is renewed while the work goes on, and the work is told if that fails
`

// report prints the table. The error names the right ways that sold wrongly.
func report(out io.Writer, results []result) (broken error) {
	rows := [][]string{{"", "sold", "left", "oversold", "sold twice", "orders/s", "slowest answer", "commands/order"}}
	for _, r := range results {
		rows = append(rows, []string{
			r.name, table.Count(r.sold), table.Count(r.left), table.Count(r.oversold()), table.Count(r.twice),
			table.Count(int(float64(r.sold) / r.took.Seconds())), table.Millis(table.Quantile(r.waits, 1)),
			table.Ratio(float64(r.commands) / float64(max(1, r.sold))),
		})
		if !r.wrong && !r.right() {
			broken = errors.Join(broken, fmt.Errorf("NOT AS PROMISED: %s: see the table", r.name))
		}
	}
	table.Write(out, rows)
	for _, r := range results {
		if r.failed > 0 {
			_, _ = fmt.Fprintf(out, "\n%d requests failed with the %s; the first said: %s\n", r.failed, r.name, r.failure)
		}
	}
	_, _ = fmt.Fprint(out, "\nOversold are orders for which nothing was taken from the stock. A script counts as one command to Redis.\n")
	return broken
}
