package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/table"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitUsage
	}
	byHand, guarded, err := compare(ctx, s, stdout)
	switch {
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "\nquickstart: interrupted")
		return exitInterrupted
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitFailed
	}
	return report(s, byHand, guarded, stdout)
}

// compare opens the backends, and measures both runs one after the other.
func compare(ctx context.Context, s settings, stdout io.Writer) (byHand, guarded measured, err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return byHand, guarded, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	db, err := backends.Database(ctx, s.query)
	if err != nil {
		return byHand, guarded, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	_, _ = fmt.Fprintf(stdout, "%d instances x %d callers want one product of %s from %s.\n"+
		"It is cached in %s for %v. A query takes %v, and %d run at a time.\n"+
		"First with GET and SET by hand, then with cacheguard:\n\n",
		s.instances, s.callers, table.Count(backends.Products), db, server, s.ttl, s.query, backends.Connections)
	st := stage{redis: server, db: db, settings: s}
	p := newProgress(stdout)
	if byHand, err = st.timed(ctx, "by hand", openByHand, p); err != nil {
		return byHand, guarded, err
	}
	guarded, err = st.timed(ctx, "cacheguard", openGuarded, p)
	return byHand, guarded, err
}

// timed is a run as long as the settings say.
func (st stage) timed(ctx context.Context, name string, shops opener, p progress) (measured, error) {
	return st.measure(ctx, shops, func(see func() sight) (context.Context, func()) {
		open, cancel := context.WithTimeout(ctx, st.settings.duration)
		shown := p.follow(name, st.settings.duration, see)
		return open, func() {
			cancel()
			shown()
		}
	})
}

// report prints the comparison, and whether the guard kept its promise.
func report(s settings, byHand, guarded measured, stdout io.Writer) int {
	_, _ = fmt.Fprintln(stdout)
	table.Write(stdout, rowsOf(byHand, guarded))
	_, _ = fmt.Fprintf(stdout, "\n%s\n", summary(byHand, guarded))
	if byHand.failed > 0 {
		_, _ = fmt.Fprintf(stdout, "\n%d calls failed by hand; the first said: %v\n", byHand.failed, byHand.err)
	}
	if why := guarded.broken(s.query); why != "" {
		_, _ = fmt.Fprintf(stdout, "\nNOT AS PROMISED: %s.\n", why)
		return exitFailed
	}
	return exitOK
}
