package mysql

import (
	"context"
	"database/sql"
	"testing"

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
	conn := "root@unix(" + server.Socket + ")/mysql"
	db, err := sql.Open("mysql", conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() }) // whatever it says, the connection is gone
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE products (id bigint PRIMARY KEY, category varchar(20), name varchar(20)) ENGINE=InnoDB"); err != nil {
		b.Fatal(err)
	}
	rdb := redis.Client(b)
	guard, products := feedtest.NewCache(b, rdb, "bench", sql.ErrNoRows, feedtest.LoadNothing)
	f, err := New(Config{
		Conn: conn, Name: "bench", Redis: rdb, Guards: []*cacheguard.Guard{guard}, Tables: []cdc.Table{feedtest.ByID("mysql.products", products)},
	})
	if err != nil {
		b.Fatal(err)
	}
	feedtest.RunFor(b, f)
	return &feedtest.Measured{Feed: f, Dialect: feedtest.MariaDB, Database: server, Redis: redis, Exec: func(ctx context.Context, sql string) error {
		_, err := db.ExecContext(ctx, sql)
		return err
	}}
}
