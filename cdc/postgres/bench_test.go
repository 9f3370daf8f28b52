package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func BenchmarkRows(b *testing.B) { measured(b).Rows(b) }

func BenchmarkCommitToInvalidated(b *testing.B) { measured(b).Commits(b) }

// measured is a feed that reads the changes of a table.
func measured(b *testing.B) *feedtest.Measured {
	b.Helper()
	server, redis := startServer(b), redistest.Start(b)
	pool, err := pgxpool.New(b.Context(), server.Address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(b.Context(), "CREATE TABLE products (id bigint PRIMARY KEY, category text, name text); CREATE PUBLICATION shop FOR TABLE products"); err != nil {
		b.Fatal(err)
	}
	guard, products := feedtest.NewCache(b, redis.Client(b), "bench", pgx.ErrNoRows, feedtest.LoadNothing)
	f, err := New(Config{
		Conn: server.Address, Publication: "shop", Slot: "bench", Guards: []*cacheguard.Guard{guard},
		Tables: []cdc.Table{feedtest.ByID("public.products", products)},
	})
	if err != nil {
		b.Fatal(err)
	}
	feedtest.RunFor(b, f)
	return &feedtest.Measured{Feed: f, Dialect: feedtest.PostgreSQL, Database: server, Redis: redis, Exec: func(ctx context.Context, sql string) error {
		_, err := pool.Exec(ctx, sql)
		return err
	}}
}
