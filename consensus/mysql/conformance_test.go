package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// examples is the server of the examples.
var examples = servers.Share(func(tb testing.TB) string { return start(tb).Addr })

func TestMain(m *testing.M) { examples.Main(m) }

// AddressOfExamples returns the address of a MariaDB, for the examples.
func AddressOfExamples() string { return "root@unix(" + examples.Addr() + ")/mysql" }

func TestLocksKeepTheirPromises(t *testing.T) { locktest.Run(t, kind()) }

func TestAProcessOfTheSuite(t *testing.T) { locktest.Child(t, kind()) }

func kind() locktest.Kind {
	return locktest.Kind{
		Start: start, Open: open, Over: func(relays []string) string { return relays[0] },
		Asking: asking, Cut: cut, Clock: clock, Clocked: true, TTL: 3 * time.Second,
		NotAcquired: ErrNotAcquired, LeaseLost: ErrLeaseLost, Closed: ErrClosed,
	}
}

// connect takes the path of the server's socket, or the host:port of a relay.
func connect(tb testing.TB, addr string) *sql.DB {
	tb.Helper()
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.Timeout = "root", "tcp", addr, "mysql", 5*time.Second
	if strings.HasPrefix(addr, "/") {
		cfg.Net = "unix"
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return sql.OpenDB(connector)
}

func start(tb testing.TB) locktest.Server {
	server := servers.StartMariaDB(tb, func(socket string) bool {
		db := connect(tb, socket)
		defer db.Close()
		return CreateTable(context.Background(), db) == nil
	})
	return locktest.Server{Addr: server.Socket, Members: []locktest.Member{server}, Doors: []string{server.Socket}}
}

func open(tb testing.TB, addr string, cfg locktest.Config) locktest.Locks {
	tb.Helper()
	db := connect(tb, addr)
	tb.Cleanup(func() { _ = db.Close() }) // it is of no use any more
	k, err := New(db, Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, Timeout: cfg.Timeout, Hooks: Hooks{OnLock: cfg.OnLock, OnUnlock: cfg.OnUnlock},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = k.Close() }) // always nil
	return locktest.Of(k)
}

// asking counts the holder of the named lock and the statements that wait for it.
func asking(tb testing.TB, addr, prefix, name string) int {
	tb.Helper()
	db := connect(tb, addr)
	defer db.Close()
	s := &session{}
	if err := s.identify(context.Background(), db, prefix+":"+name); err != nil {
		tb.Fatal(err)
	}
	var waiting, holding int
	err := db.QueryRow(`SELECT (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'), IS_USED_LOCK(?) IS NOT NULL`,
		s.lock).Scan(&waiting, &holding)
	if err != nil {
		tb.Fatal(err)
	}
	return waiting + holding
}

// cut ends the session that has the named lock of a name.
func cut(tb testing.TB, addr, prefix, name string) {
	tb.Helper()
	db := connect(tb, addr)
	defer db.Close()
	s := &session{}
	err := s.identify(context.Background(), db, prefix+":"+name)
	var holder int64
	if err == nil {
		err = db.QueryRow(`SELECT IS_USED_LOCK(?)`, s.lock).Scan(&holder)
	}
	if err == nil {
		_, err = db.Exec(fmt.Sprintf("KILL %d", holder))
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func clock(tb testing.TB, addr string) time.Time {
	tb.Helper()
	db := connect(tb, addr)
	defer db.Close()
	var seconds int64
	if err := db.QueryRow(`SELECT UNIX_TIMESTAMP()`).Scan(&seconds); err != nil {
		tb.Fatal(err)
	}
	return time.Unix(seconds, 0)
}
