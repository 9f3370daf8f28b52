// Command conformance runs the public test suite for HTTP caches (github.com/http-tests/cache-tests) against the middleware in
// front of httputil.ReverseProxy, and writes a report.
//
//	go run ./bench/cmd/conformance -suite DIR -out docs/conformance.md -required 159 -optimal 95
//
// It runs the suite twice: with the settings that the suite expects, and with the zero Config. DIR is an installed copy of the suite: scripts/conformance finds or fetches one. The suite's own server is the origin and its
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

	"github.com/cacheguard/go/middleware"
)

// longest is how long a run may take: the suite waits three seconds in many of its checks, and runs 25 at once.
const longest = 10 * time.Minute

type options struct {
	suite             string // the directory of the suite
	edition           string // what it is called in the report
	out               string // the report; empty: standard output gets only the score
	required, optimal int    // the floors
	ofDefaults        floors // with the zero Config
}

// floors are how many checks have to pass.
type floors struct{ required, optimal int }

func main() {
	var o options
	flag.StringVar(&o.suite, "suite", "", "directory of the suite")
	flag.StringVar(&o.edition, "edition", "", "what the suite's edition is called in the report")
	flag.StringVar(&o.out, "out", "", "file to write the report to")
	flag.IntVar(&o.required, "required", 0, "fail when fewer required checks pass")
	flag.IntVar(&o.optimal, "optimal", 0, "fail when fewer optimal checks pass")
	flag.IntVar(&o.ofDefaults.required, "default-required", 0, "fail when fewer required checks pass with the zero Config")
	flag.IntVar(&o.ofDefaults.optimal, "default-optimal", 0, "fail when fewer optimal checks pass with the zero Config")
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
	tuned, err := rate(ctx, s, checks, "", settings)
	if err != nil {
		return err
	}
	byDefault, err := rate(ctx, s, checks, "with the zero Config: ", middleware.Config{})
	if err != nil {
		return err
	}
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(report(o.edition, tuned, byDefault)), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(tuned.reach(floors{o.required, o.optimal}), byDefault.reach(o.ofDefaults))
}

// rate runs the suite with the settings, and prints the scores.
func rate(ctx context.Context, s suite, checks []check, how string, cfg middleware.Config) (scores, error) {
	results, err := measure(ctx, s, cfg)
	if err != nil {
		return scores{}, err
	}
	scored, err := score(checks, results)
	if err != nil {
		return scores{}, err
	}
	fmt.Printf("%srequired %v, optimal %v\n", how, scored.required, scored.optimal)
	for _, m := range scored.missed {
		fmt.Printf("%s %s: %s\n", m.kind, m.id, m.what)
	}
	return scored, nil
}

// reach says so when fewer checks passed.
func (s *scores) reach(f floors) error {
	if s.required.passed < f.required || s.optimal.passed < f.optimal {
		return fmt.Errorf("at least %d required and %d optimal checks were to pass", f.required, f.optimal)
	}
	return nil
}
