package consistency

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/internal/testing/leaks"
	"github.com/cacheguard/go/internal/testing/servers"
)

const keys = 64

// rows are the source: a version for each key, which every write increments.
type rows struct{ *pgxpool.Pool }

func openRows(t *testing.T, url string) rows {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return rows{pool}
}

func (r rows) create(t *testing.T) {
	t.Helper()
	_, err := r.Exec(t.Context(), "CREATE TABLE item (key text PRIMARY KEY, version bigint NOT NULL, fence bigint NOT NULL)")
	if err != nil {
		t.Fatal(err)
	}
	for k := range keys {
		if _, err := r.Exec(t.Context(), "INSERT INTO item VALUES ($1, 1, 0)", keyOf(k)); err != nil {
			t.Fatal(err)
		}
	}
}

func keyOf(k int) string { return fmt.Sprint("k", k) }

func (r rows) read(ctx context.Context, key string) (version int64, err error) {
	err = r.QueryRow(ctx, "SELECT version FROM item WHERE key = $1", key).Scan(&version)
	return version, err
}

// write fails when a larger fence has written already. Fence 0 stands for no fence.
func (r rows) write(ctx context.Context, key string, fence int64) (version int64, err error) {
	err = r.QueryRow(ctx, `UPDATE item SET version = version + 1, fence = $2 WHERE key = $1 AND fence <= $2
		RETURNING version`, key, fence).Scan(&version)
	return version, err
}

// clients is how many connections the children have.
func (r rows) clients(t *testing.T) (n int) {
	t.Helper()
	err := r.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'child'").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which reports every connection that is lost
	leaks.Main(m)
}

// startPostgres runs a PostgreSQL of the test's own until it ends, and returns how to connect to it.
func startPostgres(t *testing.T) (url string) {
	t.Helper()
	return servers.StartPostgres(t, func(address string) bool {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	}).Address
}
