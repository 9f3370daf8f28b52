// Rollout brings a cache into a service that is under load and has an older cache by hand, as docs/rollout.md says: it
// is compared first and serves nobody, then it serves a share of the keys, then all; and back to the older cache.
// After that it deploys a new Version of what is cached, once without a warm-up and once with one.
//
// It needs nothing but Go. REDIS_URL names a real Redis to use instead of the embedded one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard/rollout"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

const (
	instances  = 3
	readers    = 8 // of an instance
	fleetLoads = 6
	query      = 2 * time.Millisecond
	often      = 20 // a product is read in a deployment, on average
	warmed     = 20 // a deployment that warms makes at most one in so many of the loads for callers
)

// settings are what the flags say.
type settings struct {
	products int
	step     time.Duration
}

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "rollout", About: "Rollout brings a cache into a service under load, and deploys a new Version of what is cached.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.products, "products", 500, "`number` of products")
			f.DurationVar(&s.step, "step", time.Second, "how long each step of the rollout takes")
		},
		Short: map[string]string{"step": "400ms", "products": "100"},
		Check: func() error {
			switch {
			case s.products < 10 || s.products > 10_000:
				return fmt.Errorf("-products: %d is not between 10 and 10000", s.products)
			case s.step < 10*time.Millisecond || s.step > time.Hour:
				return fmt.Errorf("-step: %v is not between 10ms and 1h", s.step)
			}
			return nil
		},
		Run: func(ctx context.Context, out io.Writer) (err error) {
			server, err := backends.Redis(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, server.Close()) }()
			_, _ = fmt.Fprintf(out, "%d instances x %d readers, %d products, a query takes %v, and prices change all the time. The cache is %s.\n\n",
				instances, readers, s.products, query, server)
			return errors.Join(s.rollout(ctx, out, server), s.deployments(ctx, out, server))
		},
	}
}

// rollout turns the cache on in steps, and off again.
func (s *settings) rollout(ctx context.Context, out io.Writer, server *backends.RedisServer) (err error) {
	shop := newShop(s.products)
	f, err := openFleet(server, shop, settingsOf{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	seen, err := s.compare(ctx, f)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "Compared with the database, while it serves nobody: %s prices, %s of them cached, %d old; of the older cache's, %d.\n\n",
		table.Count(seen.Compared), table.Count(seen.Hits), seen.Old, seen.OtherOld)
	rows := [][]string{{"", "reads", "from the Guard", "queries", "read p50", "old values", "of the older cache"}}
	for _, step := range []struct {
		name  string
		share float64
	}{{"the older cache", 0}, {"5 % of the keys", 5}, {"half of them", 50}, {"all", 100}, {"back to the older cache", 0}} {
		f.turn(step.share)
		before := shop.queries.Load()
		r, err := f.underLoad(ctx, s.step)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		rows = append(rows, []string{
			step.name, table.Count(len(r.took)), table.Count(r.hits), table.Count(int(shop.queries.Load() - before)),
			table.Millis(table.Quantile(r.took, 0.5)), table.Count(r.old), table.Count(r.ofTheOlder),
		})
		if r.old > 0 {
			return fmt.Errorf("NOT AS PROMISED: %s: %d old values", step.name, r.old)
		}
	}
	table.Write(out, rows)
	if why := shop.heldUp(); why != "" {
		_, _ = fmt.Fprintf(out, "\n%s. The times of reads mean nothing.\n", why)
	}
	_, _ = fmt.Fprintln(out)
	return nil
}

// compare compares the cache under load, while the older one serves.
func (s *settings) compare(ctx context.Context, f *fleet) (seen rollout.Seen, err error) {
	f.turn(0)
	done := make(chan struct{})
	var comparing sync.WaitGroup
	comparing.Go(func() { seen = f.compare(ctx, done) }) // owner: compare
	_, err = f.underLoad(ctx, s.step)
	close(done)
	comparing.Wait()
	if seen.Old > 0 {
		err = errors.Join(err, fmt.Errorf("NOT AS PROMISED: %+v", seen))
	}
	return seen, err
}

// deployments replaces a fleet by one with another Version, without a warm-up and with one.
func (s *settings) deployments(ctx context.Context, out io.Writer, server *backends.RedisServer) (err error) {
	shop := newShop(s.products)
	prefix := newPrefix()
	var fleets []*fleet
	defer func() {
		for _, f := range fleets {
			err = errors.Join(err, f.close())
		}
	}()
	rows := [][]string{{"", "loads before it serves", "loads for callers", "most connections"}}
	var queries []int64
	for version, name := range []string{"the first instances", "Version 1, cold", "Version 2, warmed"} {
		f, err := openFleet(server, shop, settingsOf{prefix: prefix, version: version})
		if err != nil {
			return err
		}
		fleets = append(fleets, f)
		shop.most.Store(0)
		began := shop.queries.Load()
		if version == 2 {
			if err := f.warm(ctx, version-1); err != nil {
				return err
			}
		}
		ready := shop.queries.Load()
		if _, err := f.readAll(ctx, func(reads int) bool { return reads < s.products*often/instances/readers }); err != nil {
			return err
		}
		queries = append(queries, shop.queries.Load()-ready)
		rows = append(rows, []string{name, table.Count(int(ready - began)), table.Count(int(queries[version])), table.Count(int(shop.most.Load()))})
		if most := shop.most.Load(); most > fleetLoads {
			return fmt.Errorf("NOT AS PROMISED: %d connections, with %d permits", most, fleetLoads)
		}
	}
	table.Write(out, rows)
	_, _ = fmt.Fprintf(out, "\nThe Limiter has %d permits: neither callers nor the warm-up take more connections of the database than that, all instances together.\n", fleetLoads)
	switch why := shop.heldUp(); {
	case queries[2]*warmed <= queries[1]:
	case why != "":
		_, _ = fmt.Fprintf(out, "\n%s. There were %d loads for callers after a warm-up, and %d without one.\n", why, queries[2], queries[1])
	default:
		return fmt.Errorf("NOT AS PROMISED: %d loads for callers after a warm-up, %d without one", queries[2], queries[1])
	}
	return nil
}
