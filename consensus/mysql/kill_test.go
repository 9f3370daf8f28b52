package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// killing is a connection that keeps the answer to a KILL until the test says so.
type killing struct {
	net.Conn

	kills   atomic.Bool
	proceed <-chan struct{}
	left    *atomic.Bool // it was closed before the answer was there
}

func (c *killing) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("KILL QUERY")) {
		c.kills.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *killing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.kills.Load() {
		<-c.proceed
		c.kills.Store(false)
	}
	return n, err
}

func (c *killing) Close() error {
	if c.kills.Load() {
		c.left.Store(true)
	}
	return c.Conn.Close()
}

func TestAConnectionServesNobodyElseBeforeTheKillOfItsWaitIsAnswered(t *testing.T) {
	proceed, left := make(chan struct{}), new(atomic.Bool)
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = "root", "unix", examples.Addr(), "mysql"
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &killing{Conn: conn, proceed: proceed, left: left}, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	k, err := New(db, Config{Prefix: t.Name(), TTL: time.Hour, Timeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	other := open(t, examples.Addr(), locktest.Config{Prefix: t.Name()})
	held, err := other.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() { // owner: the test; ends with ctx; joined below
		_, err := k.Lock(ctx, "x")
		waited <- err
	}()
	redistest.Await(t, "it waits", func() bool { return asking(t, examples.Addr(), t.Name(), "x") == 2 })
	cancel()
	expect.ErrorIs(t, <-waited, ErrNotAcquired, context.Canceled)
	redistest.Await(t, "the wait has ended", func() bool { return asking(t, examples.Addr(), t.Name(), "x") == 1 })
	for range 50 { // requests to the server: time to give the connection back
		_ = asking(t, examples.Addr(), t.Name(), "x")
		expect.Equal(t, "connections in use", db.Stats().InUse, 2)
	}
	expect.Equal(t, "the KILL was given up", left.Load(), false)
	close(proceed)
	redistest.Await(t, "both connections are given back", func() bool { return db.Stats().Idle == 2 })
	expect.ErrorIs(t, held.Unlock(t.Context()), nil)
}
