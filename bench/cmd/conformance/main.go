// Command conformance runs the public test suite for HTTP caches (github.com/http-tests/cache-tests) against the middleware in
// front of httputil.ReverseProxy, and writes a report.
//
//	go run ./bench/cmd/conformance -suite DIR -out docs/conformance.md -required 159 -optimal 95
//
// DIR is an installed copy of the suite: scripts/conformance finds or fetches one. The suite's own server is the origin and its
// own client asks the questions; both need nodejs. The exit status is 1 when fewer checks pass than the flags ask for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// longest is how long a run may take: the suite waits three seconds in many of its checks, and runs 25 at once.
const longest = 5 * time.Minute

type options struct {
	suite             string // the directory of the suite
	edition           string // what it is called in the report
	out               string // the report; empty: standard output gets only the score
	required, optimal int    // the floors
}

func main() {
	var o options
	flag.StringVar(&o.suite, "suite", "", "directory of the suite")
	flag.StringVar(&o.edition, "edition", "", "what the suite's edition is called in the report")
	flag.StringVar(&o.out, "out", "", "file to write the report to")
	flag.IntVar(&o.required, "required", 0, "fail when fewer required checks pass")
	flag.IntVar(&o.optimal, "optimal", 0, "fail when fewer optimal checks pass")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.suite == "" {
		return errors.New("-suite names no directory")
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	s := suite{dir: o.suite}
	checks, err := s.checks(ctx)
	if err != nil {
		return err
	}
	results, err := measure(ctx, s)
	if err != nil {
		return err
	}
	scored, err := score(checks, results)
	if err != nil {
		return err
	}
	fmt.Printf("required %v, optimal %v\n", scored.required, scored.optimal)
	for _, m := range scored.missed {
		fmt.Printf("%s %s: %s\n", m.kind, m.id, m.what)
	}
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(report(o.edition, scored)), 0o644); err != nil {
			return err
		}
	}
	if scored.required.passed < o.required || scored.optimal.passed < o.optimal {
		return fmt.Errorf("at least %d required and %d optimal checks were to pass", o.required, o.optimal)
	}
	return nil
}
