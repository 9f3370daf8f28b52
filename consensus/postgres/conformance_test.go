package postgres

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// examples is the server of the examples.
var examples = servers.Share(func(tb testing.TB) string { return start(tb).Addr })

func TestMain(m *testing.M) { examples.Main(m) }

// AddressOfExamples is the address of a PostgreSQL, for the examples.
func AddressOfExamples() string { return examples.Addr() }

func TestLocksKeepTheirPromises(t *testing.T) { locktest.Run(t, kind()) }

func TestAProcessOfTheSuite(t *testing.T) { locktest.Child(t, kind()) }

func kind() locktest.Kind {
	return locktest.Kind{
		Start: start, Open: open, Over: over, Asking: asking, Cut: cut, Clock: clock, Clocked: true, LeapsEndSessions: true, TTL: 3 * time.Second,
		NotAcquired: ErrNotAcquired, LeaseLost: ErrLeaseLost, Closed: ErrClosed,
	}
}

func start(tb testing.TB) locktest.Server {
	server := servers.StartPostgres(tb, func(address string) bool {
		pool, err := pgxpool.New(context.Background(), address)
		if err != nil {
			tb.Fatal(err)
		}
		defer pool.Close()
		return CreateTable(context.Background(), pool) == nil
	})
	return locktest.Server{Addr: server.Address, Members: []locktest.Member{server}, Doors: []string{server.Socket}, LateWhenFrozen: true}
}

// over is the address of the server by way of a relay, which cannot read TLS.
func over(relays []string) string {
	host, port, _ := net.SplitHostPort(relays[0]) // it has both
	return "host=" + host + " port=" + port + " user=test dbname=postgres sslmode=disable"
}

func newPool(tb testing.TB, addr string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func open(tb testing.TB, addr string, cfg locktest.Config) locktest.Locks {
	tb.Helper()
	k, err := New(newPool(tb, addr), Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, Timeout: cfg.Timeout, Hooks: Hooks{OnLock: cfg.OnLock, OnUnlock: cfg.OnUnlock},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = k.Close() }) // always nil
	return locktest.Of(k)
}

// asking counts those who have the advisory lock of a name or wait for it.
func asking(tb testing.TB, addr, prefix, name string) (n int) {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer pool.Close()
	err = pool.QueryRow(context.Background(), `SELECT count(*) FROM pg_locks l, cacheguard_locks c
		WHERE locktype = 'advisory' AND classid = c.tableoid AND objid = c.id::oid AND c.name = $1`, prefix+":"+name).Scan(&n)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// cut ends the session that has the advisory lock of a name.
func cut(tb testing.TB, addr, prefix, name string) {
	tb.Helper()
	_, err := newPool(tb, addr).Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_locks l, cacheguard_locks c
		WHERE locktype = 'advisory' AND granted AND classid = c.tableoid AND objid = c.id::oid AND c.name = $1`, prefix+":"+name)
	if err != nil {
		tb.Fatal(err)
	}
}

func clock(tb testing.TB, addr string) (now time.Time) {
	tb.Helper()
	if err := newPool(tb, addr).QueryRow(context.Background(), `SELECT clock_timestamp()`).Scan(&now); err != nil {
		tb.Fatal(err)
	}
	return now
}
