// Command model has SPIN search the models of package proof/model: all runs within their bounds keep the promises, and without any one rule of the
// protocol, a run breaks one. It prints that run.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/cacheguard/go/internal/testing/replay"
	"github.com/cacheguard/go/proof/model"
)

type options struct {
	name, rule string
	large      bool
	quiet      bool
}

func main() {
	var o options
	flag.StringVar(&o.name, "model", "", "search this model alone, such as load")
	flag.StringVar(&o.rule, "rule", "", "leave out this rule alone, such as HELD_ONCE")
	flag.BoolVar(&o.large, "large", os.Getenv("MODEL") == "large", "search larger bounds, too, for some minutes; so does MODEL=large")
	flag.BoolVar(&o.quiet, "quiet", false, "do not print the runs that break a promise")
	notes := flag.Bool("notes", false, "write the hashes of the scripts into docs/design/model.md, after you have looked at what changed")
	draw := flag.Int("draw", 0, "draw so many runs into the testdata of the tests that replay them; of one kind with -model, such as cut")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := work(ctx, log.New(os.Stdout, "", 0), o, *notes, *draw)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func work(ctx context.Context, out *log.Logger, o options, notes bool, draw int) error {
	if notes {
		return model.WriteNotes(".")
	}
	models, err := model.All()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files
	if draw > 0 {
		return (&model.Searcher{Dir: dir}).DrawAll(ctx, ".", o.name, draw)
	}
	began, failed := time.Now(), 0
	for _, m := range models {
		if o.name != "" && o.name != m.Name {
			continue
		}
		wrong, err := searchAll(ctx, out, &model.Searcher{Dir: dir}, m, o)
		if err != nil {
			return err
		}
		failed += wrong
	}
	out.Printf("all searches took %.0f s\n", time.Since(began).Seconds())
	if failed > 0 {
		return fmt.Errorf("%d searches found what they should not, or did not find what they should", failed)
	}
	return nil
}

func searchAll(ctx context.Context, out *log.Logger, s *model.Searcher, m model.Model, o options) (wrong int, err error) {
	report := func(kind string, b model.Bounds, search func(context.Context, model.Model, model.Bounds) (model.Found, error)) error {
		if o.rule != "" || err != nil {
			return err
		}
		found, err := search(ctx, m, b)
		if err == nil {
			out.Printf("%s %s: %s (%d states)\n", m.Name, kind, b.Says, found.States)
			if found.Wrong != "" {
				wrong++
				out.Printf("%s  WRONG: %s\n", replay.Sequence(found.Trail), found.Wrong)
			}
		}
		return err
	}
	for _, b := range m.Holds {
		err = report("holds", b, s.Holds)
	}
	for _, b := range m.Ends {
		err = report("ends", b, s.Ends)
	}
	if o.large {
		for _, b := range m.Large {
			err = report("holds (large)", b, s.Holds)
		}
	}
	for _, b := range m.Known {
		if o.rule == "" && err == nil {
			var found model.Found
			if found, err = s.Holds(ctx, m, b); err == nil {
				wrong += missing(out, m, "known", b, found, o.quiet)
			}
		}
	}
	for _, r := range m.Rules {
		if err != nil {
			return wrong, err
		}
		if o.rule != "" && o.rule != r.Name {
			continue
		}
		var found model.Found
		if found, err = s.Without(ctx, m, r); err == nil {
			wrong += missing(out, m, "without "+r.Name, r.Bounds, found, o.quiet)
		}
	}
	return wrong, err
}

// missing reports a run that breaks a promise, and returns 1 if there is none.
func missing(out *log.Logger, m model.Model, kind string, b model.Bounds, found model.Found, quiet bool) int {
	out.Printf("%s %s: %s\n", m.Name, kind, b.Says)
	if found.Wrong == "" {
		out.Printf("  WRONG: no promise is broken (%d states)\n", found.States)
		return 1
	}
	if !quiet {
		out.Print(replay.Sequence(found.Trail))
	}
	out.Printf("      broken: %s\n", found.Wrong)
	return 0
}
