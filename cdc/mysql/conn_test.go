package mysql

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestAPasswordThatRotatesUnderLoadNeedsNoRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	w.exec("CREATE USER app", "GRANT REPLICATION SLAVE, BINLOG MONITOR, SELECT ON *.* TO app", "INSERT INTO products VALUES (1, 'a', 'one')")
	r := &feedtest.Rotation{Shop: w.Shop, Rotate: func(password string) { w.exec("ALTER USER app IDENTIFIED BY '" + password + "'") }}
	r.To("first")
	cfg := w.config()
	conn := cfg.Conn
	cfg.Conn, cfg.NewConn = "", func(context.Context) (string, error) {
		return strings.Replace(conn, "root", "app:"+r.Password(), 1), nil
	}
	f, _ := w.run(cfg)
	w.CatchUp(f)
	w.Reads(1, "one")
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	r.Feed, r.Write = f, func(ctx context.Context, name string) error {
		_, err := w.db.ExecContext(ctx, "UPDATE products SET name = ?", name)
		return err
	}
	r.End = func() { w.exec("KILL USER app") }
	r.Run()
}

func TestWhatNewConnSaysIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	cfg := w.config()
	none := errors.New("no token")
	cfg.NewConn = func(context.Context) (string, error) { return "", none }
	_, err := New(cfg)
	feedtest.Says(t, err, "Config.NewConn", "only one of them")
	cfg.Conn = ""
	f, err := New(cfg)
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, f.SelfCheck(t.Context()), none)
	expect.ErrorIs(t, f.CatchUp(t.Context()), none)
}

// TestTLSIsWhatTheConnectionSaysForTheReaderToo has a server without TLS.
func TestTLSIsWhatTheConnectionSaysForTheReaderToo(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--skip-ssl")
	relay, err := distance.Start(server.Socket, 0)
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = relay.Close() })
	w := newWorld(t, server.Socket)
	cfg := w.config()
	cfg.Conn = "root@tcp(" + relay.Addr() + ")/" + w.name + "?tls=preferred"
	f, _ := w.run(cfg)
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	cfg.Conn = strings.Replace(cfg.Conn, "preferred", "skip-verify", 1)
	f, err = New(cfg)
	expect.ErrorIs(t, err)
	feedtest.Says(t, f.SelfCheck(t.Context()), "TLS")
}
