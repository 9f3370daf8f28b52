// Feed has somebody write past the cache: an UPDATE of many rows, as in a migration, that calls no Invalidate. Without a feed the cache serves the old rows until
// their TTL ends. With a feed it does so for some milliseconds.
//
// It needs nothing but Go: the database is SQLite, with an outbox that triggers fill. REDIS_URL names a real Redis, and DATABASE_URL a real PostgreSQL, whose
// log is read then: it needs wal_level = logical, and a role that may replicate and create publications.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/outbox"
	"github.com/cacheguard/go/cdc/postgres"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

func main() { new(settings).program().Main() }

// settings are what the flags say.
type settings struct{ products int }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "feed", About: "Feed has somebody write past the cache, with a feed of the database's changes and without.",
		Flags: func(f *flag.FlagSet) { f.IntVar(&s.products, "products", 200, "`number` of products") },
		Short: map[string]string{"products": "20"},
		Check: func() error {
			if s.products < 1 || s.products > 10_000 {
				return fmt.Errorf("-products: %d is not between 1 and 10000", s.products)
			}
			return nil
		},
		Run: func(ctx context.Context, out io.Writer) error {
			return sqldb.With(ctx, func(server *backends.RedisServer, db *sqldb.DB) error { return s.run(ctx, out, server, db) })
		},
	}
}

// feed is one of package cdc.
type feed interface {
	Run(ctx context.Context) error
	CatchUp(ctx context.Context) error
	SelfCheck(ctx context.Context) error
	Stats() cdc.Stats
}

// shop is a cache of products.
type shop struct {
	db       *sqldb.DB
	table    string
	guard    *cacheguard.Guard
	products *cacheguard.Cache[int64, int64] // ids and prices in cents
	count    int
}

func (s *settings) run(ctx context.Context, out io.Writer, server *backends.RedisServer, db *sqldb.DB) (err error) {
	table, err := db.Create(ctx, "products", `id bigint PRIMARY KEY, cents bigint NOT NULL`, `i, 100`, s.products)
	if err != nil {
		return err
	}
	rdb := server.NewClient()
	defer rdb.Close()
	shop := &shop{db: db, table: table, count: s.products}
	prefix := fmt.Sprintf("cacheguard-feed-%d", time.Now().UnixNano())
	defer func() { err = errors.Join(err, server.Delete(context.Background(), prefix)) }()
	if shop.guard, err = cacheguard.New(rdb, cacheguard.Config{Prefix: prefix, TTL: 10 * time.Minute, RedisTimeout: backends.Patience}); err != nil {
		return err
	}
	defer shop.guard.Close()
	shop.products, err = cacheguard.NewCache(shop.guard, cacheguard.CacheConfig[int64, int64]{Name: "product", Load: shop.load})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s, %s, %d products in the cache\n\n", server, db, s.products)
	if err := shop.writePast(ctx, out, "without a feed", nil); err != nil {
		return err
	}
	if err := shop.guard.InvalidateAll(ctx); err != nil {
		return err
	}
	return shop.withFeed(ctx, out)
}

func (s *shop) load(ctx context.Context, id int64) (cents int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT cents FROM `+s.table+` WHERE id = $1`, id).Scan(&cents)
	return cents, err
}

// withFeed runs a feed while somebody writes.
func (s *shop) withFeed(ctx context.Context, out io.Writer) (err error) {
	f, cleanUp, err := s.open(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }() // in a service: on every instance. owner: withFeed; stop: its cancel; joined below
	defer func() {
		stop()
		if ran := <-ended; !errors.Is(ran, context.Canceled) {
			err = errors.Join(err, ran)
		}
		err = errors.Join(err, cleanUp(context.Background()))
	}()
	if err := f.SelfCheck(ctx); err != nil {
		return err // with the statement that mends it
	}
	if err := f.CatchUp(ctx); err != nil {
		return err
	}
	if err := s.writePast(ctx, out, "with a feed", f); err != nil {
		return err
	}
	stats := f.Stats()
	_, _ = fmt.Fprintf(out, "\nThe feed read %d rows, and invalidated %d keys.\n", stats.Rows, stats.Invalidations)
	return nil
}

// writePast warms the cache, raises all prices by an UPDATE that the cache does not hear of, and counts the old ones that the cache serves.
func (s *shop) writePast(ctx context.Context, out io.Writer, how string, f feed) error {
	for range 2 { // the second time they are stored
		if _, err := s.old(ctx, 0); err != nil {
			return err
		}
	}
	if _, err := s.db.Writer.ExecContext(ctx, `UPDATE `+s.table+` SET cents = cents + 1`); err != nil {
		return err
	}
	began := time.Now()
	if f != nil {
		if err := f.CatchUp(ctx); err != nil { // as after a migration; only to know when to look
			return err
		}
	}
	took := time.Since(began)
	price, err := s.load(ctx, 1)
	if err != nil {
		return err
	}
	old, err := s.old(ctx, price)
	if err != nil {
		return err
	}
	said := "until their TTL ends"
	if f != nil {
		said = fmt.Sprintf("%v after the UPDATE", took.Round(time.Millisecond))
	}
	_, err = fmt.Fprintf(out, "%-16s %5d of %d prices are old %s\n", strings.ToUpper(how[:1])+how[1:]+":", old, s.count, said)
	return err
}

// old is how many products have another price in the cache.
func (s *shop) old(ctx context.Context, price int64) (n int, err error) {
	for id := range int64(s.count) {
		cents, err := s.products.Get(ctx, id+1)
		if err != nil {
			return n, err
		}
		if cents != price {
			n++
		}
	}
	return n, nil
}

// open makes the feed of the database, and what it needs there; cleanUp removes that.
func (s *shop) open(ctx context.Context) (f feed, cleanUp func(context.Context) error, err error) {
	byID := func(r cdc.Row) (int64, error) { return r.Int64("id") }
	if address := os.Getenv("DATABASE_URL"); address != "" {
		return s.openPostgres(ctx, address, cdc.Rows("public."+s.table, s.products, byID))
	}
	return s.openOutbox(ctx, cdc.Rows(s.table, s.products, byID))
}

// openOutbox is for SQLite: triggers note what changes.
func (s *shop) openOutbox(ctx context.Context, table cdc.Table) (feed, func(context.Context) error, error) {
	for _, statement := range append(outbox.CreateTable(outbox.SQLite), outbox.Triggers(outbox.SQLite, s.table, "id")...) { // once, in a migration
		if _, err := s.db.Writer.ExecContext(ctx, statement); err != nil {
			return nil, nil, err
		}
	}
	f, err := outbox.New(s.db.Writer, outbox.Config{
		Dialect: outbox.SQLite, Tables: []cdc.Table{table}, Guards: []*cacheguard.Guard{s.guard},
	})
	return f, func(context.Context) error { return nil }, err // the database goes with the example
}

// openPostgres is for PostgreSQL: the feed reads its log. An example leaves no slot behind.
func (s *shop) openPostgres(ctx context.Context, address string, table cdc.Table) (feed, func(context.Context) error, error) {
	if _, err := s.db.ExecContext(ctx, fmt.Sprintf("CREATE PUBLICATION %[1]s FOR TABLE %[1]s", s.table)); err != nil { // once, by an administrator
		return nil, nil, err
	}
	drop := func(ctx context.Context) error {
		_, err := s.db.ExecContext(ctx, "DROP PUBLICATION "+s.table)
		return err
	}
	f, err := postgres.New(postgres.Config{
		Conn: address, Publication: s.table, Slot: s.table, Tables: []cdc.Table{table}, Guards: []*cacheguard.Guard{s.guard}, Temporary: true,
	})
	if err != nil {
		return nil, nil, errors.Join(err, drop(ctx))
	}
	return f, drop, nil
}
