// Revocation is a service on chi and gRPC whose sessions, API keys, permissions and feature flags are cached, and can be taken back. Read it in this order:
//
//   - access.go says what is cached, where and for how long, and who is admitted.
//   - revoke.go takes it back: with Update, in a transaction with Intend, and by somebody else's SQL, with a feed.
//   - doors.go is the middleware of chi and the interceptor of gRPC.
//
// The program revokes on one instance, and asks the other one when it refuses. It needs nothing but Go: the database is SQLite. REDIS_URL names a real Redis.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // a driver

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
)

func main() { example().Main() }

func example() program.Program {
	return program.Program{
		Name: "revocation", About: "Revocation takes back sessions, API keys, permissions and flags on one instance, and asks the other one.",
		Backends: "REDIS_URL replaces the embedded Redis.",
		Flags:    func(*flag.FlagSet) {}, Check: func() error { return nil },
		Run: run,
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	prefix := "revocation-" + rand.Text()
	defer func() { err = errors.Join(err, server.Delete(context.WithoutCancel(ctx), prefix)) }()
	db, err := openDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	var instances [2]*Access
	for i := range instances {
		rdb := server.NewClient()
		defer rdb.Close()
		if instances[i], err = Open(rdb, prefix, db.DB); err != nil {
			return err
		}
		defer instances[i].Close()
	}
	if err := seed(ctx, instances[0]); err != nil {
		return err
	}
	other, err := openDoors(ctx, instances[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.close()) }()
	stop, err := startFeed(ctx, instances[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	_, _ = fmt.Fprintf(out, "%s. What one instance takes back, and when the other one refuses it, on chi and on gRPC:\n\n", server)
	for _, r := range revocations(instances[0]) {
		if err := r.show(ctx, out, other); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
	}
	return showFlag(ctx, out, instances)
}

// showFlag turns a feature off.
func showFlag(ctx context.Context, out io.Writer, on [2]*Access) error {
	if err := on[0].SetFlag(ctx, "checkout", true); err != nil {
		return err
	}
	isOn := func(ctx context.Context) (bool, error) { return on[1].Flag(ctx, "checkout"), ctx.Err() }
	for range 3 {
		if ok, err := isOn(ctx); !ok {
			return errors.Join(errors.New("a flag that was set is off"), err)
		}
	}
	if err := on[0].SetFlag(ctx, "checkout", false); err != nil {
		return err
	}
	return report(ctx, out, "a flag, by Update", maxLag, isOn)
}

// startFeed runs the feed until stop is called.
func startFeed(ctx context.Context, a *Access) (stop func() error, err error) {
	feed, err := a.Feed()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }() // owner: run; stop: cancel; joined by stop
	return func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, nil
}

// database is in a folder that goes with it.
type database struct {
	*sql.DB
	folder string
}

func openDatabase(ctx context.Context) (*database, error) {
	folder, err := os.MkdirTemp("", "cacheguard-revocation-")
	if err != nil {
		return nil, err
	}
	file := filepath.ToSlash(filepath.Join(folder, "example.db"))
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	d := &database{db, folder}
	if err := migrate(ctx, db); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *database) Close() error { return errors.Join(d.DB.Close(), os.RemoveAll(d.folder)) }
