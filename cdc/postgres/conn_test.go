package postgres

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

func TestAPasswordThatRotatesUnderLoadNeedsNoRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Address)
	w.exec("CREATE ROLE app LOGIN REPLICATION; GRANT pg_monitor TO app; INSERT INTO products VALUES (1, 'a', 'one')")
	var file string
	w.ask(&file, "SHOW hba_file")
	expect.ErrorIs(t, os.WriteFile(file, []byte("local all test trust\nlocal all app scram-sha-256\n"), 0o644)) // it is there, and is its owner's
	w.exec("SELECT pg_reload_conf()")
	w.Await("passwords count", func() bool {
		var rules int
		w.ask(&rules, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256' AND error IS NULL")
		return rules == 1
	})
	r := &feedtest.Rotation{Shop: w.Shop, Rotate: func(password string) { w.exec("ALTER ROLE app PASSWORD '" + password + "'") }}
	r.To("first")
	cfg := w.config()
	cfg.Conn, cfg.NewConn = "", func(context.Context) (string, error) { return w.addr + " user=app password=" + r.Password(), nil }
	f, _ := w.run(cfg)
	w.CatchUp(f)
	w.Reads(1, "one")
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
	r.Feed, r.Write = f, func(ctx context.Context, name string) error {
		_, err := w.pool.Exec(ctx, "UPDATE products SET name = $1", name)
		return err
	}
	r.End = func() { w.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'") }
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
	cfg.NewConn = func(context.Context) (string, error) { return "port=x", nil }
	f, err = New(cfg)
	expect.ErrorIs(t, err)
	feedtest.Says(t, f.SelfCheck(t.Context()), "cdc/postgres", "port")
}
