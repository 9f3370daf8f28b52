package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

// compared is the program: it lets the crowd loose on one contestant after the other, and prints what came of it.
func compared(contestants ...contestant) program.Program {
	var s settings
	return program.Program{
		Name: "quickstart", About: "Quickstart compares caches while a hot entry keeps expiring.",
		Backends: "REDIS_URL replaces the embedded Redis.",
		Flags:    s.flags, Short: short, Check: s.check,
		Run: func(ctx context.Context, out io.Writer) error { return compare(ctx, s, contestants, out) },
	}
}

// compare opens the backends, measures one run after the other, and prints the comparison.
func compare(ctx context.Context, s settings, contestants []contestant, out io.Writer) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	db, err := openDatabase(s.query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()

	names := make([]string, len(contestants))
	for i, c := range contestants {
		names[i] = c.Name
	}
	_, _ = fmt.Fprintf(out, "%d instances x %d callers want one product of %s from an embedded bbolt.\n"+
		"It is cached in %s for %v. A query takes %v, and %d run at a time.\n"+
		"One after the other: %s.\n\n",
		s.instances, s.callers, table.Count(products), server, s.ttl, s.query, connections, strings.Join(names, ", "))
	st := stage{redis: server, db: db, settings: s}
	p := newProgress(out)
	results := make([]measured, len(contestants))
	for i, c := range contestants {
		if results[i], err = st.timed(ctx, c, p); err != nil {
			return err
		}
	}
	return report(s, names, results, out)
}

// timed is a run as long as the settings say.
func (st stage) timed(ctx context.Context, c contestant, p progress) (measured, error) {
	return st.measure(ctx, c, func(see func() sight) (context.Context, func()) {
		open, cancel := context.WithTimeout(ctx, st.settings.duration)
		shown := p.follow(c.Name, st.settings.duration, see)
		return open, func() {
			cancel()
			shown()
		}
	})
}

// report prints the comparison. It is an error if the last contestant did not keep cacheguard's promise.
func report(s settings, names []string, results []measured, out io.Writer) error {
	_, _ = fmt.Fprintln(out)
	table.Write(out, rowsOf(names, results))
	_, _ = fmt.Fprintf(out, "\n%s\n", summary(names, results))
	last := len(results) - 1
	for i, m := range results[:last] {
		if m.failed > 0 {
			_, _ = fmt.Fprintf(out, "\n%d calls failed with %s; the first said: %v\n", m.failed, names[i], m.err)
		}
	}
	if why := results[last].broken(s.query); why != "" {
		return errors.New(why)
	}
	if why := results[last].unclear(); why != "" {
		_, _ = fmt.Fprintf(out, "\n%s\n", why)
	}
	return nil
}
