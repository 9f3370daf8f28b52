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
	"runtime"
	"sync"
	"sync/atomic"
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
	began := time.Now()
	var all []search
	for _, m := range models {
		if o.name == "" || o.name == m.Name {
			all = append(all, searches(&model.Searcher{Dir: dir}, m, o)...)
		}
	}
	atOnce := runtime.GOMAXPROCS(0)
	if o.large {
		atOnce = 1 // one may take gigabytes
	}
	wrong, err := inOrder(ctx, out, all, atOnce)
	if err != nil {
		return err
	}
	out.Printf("all searches took %.0f s\n", time.Since(began).Seconds())
	if wrong > 0 {
		return fmt.Errorf("%d searches found what they should not, or did not find what they should", wrong)
	}
	return nil
}

// search makes a search, and says what came of it.
type search func(ctx context.Context) said

type said struct {
	text  string
	wrong bool
	err   error
}

// inOrder makes some searches at once, and prints what they say in their order. It returns how many are wrong.
func inOrder(ctx context.Context, out *log.Logger, all []search, atOnce int) (wrong int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	results := make([]chan said, len(all))
	for i := range results {
		results[i] = make(chan said, 1)
	}
	var next atomic.Int64
	for range atOnce {
		workers.Go(func() { // owner: the call, which waits; ends with the searches
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				results[i] <- all[i](ctx)
			}
		})
	}
	for _, result := range results {
		r := <-result
		if r.err != nil {
			return wrong, r.err
		}
		out.Print(r.text)
		if r.wrong {
			wrong++
		}
	}
	return wrong, nil
}

// searches makes the searches of a model.
func searches(s *model.Searcher, m model.Model, o options) (all []search) {
	holds := func(kind string, bounds []model.Bounds, by func(context.Context, model.Model, model.Bounds) (model.Found, error)) {
		for _, b := range bounds {
			all = append(all, func(ctx context.Context) said {
				found, err := by(ctx, m, b)
				text := fmt.Sprintf("%s %s: %s (%d states)\n", m.Name, kind, b.Says, found.States)
				if found.Wrong != "" {
					text += fmt.Sprintf("%s  WRONG: %s\n", replay.Sequence(found.Trail), found.Wrong)
				}
				return said{text, found.Wrong != "", err}
			})
		}
	}
	if o.rule == "" {
		holds("holds", m.Holds, s.Holds)
		holds("ends", m.Ends, s.Ends)
		if o.large {
			holds("holds (large)", m.Large, s.Holds)
		}
		for _, b := range m.Known {
			all = append(all, func(ctx context.Context) said {
				found, err := s.Holds(ctx, m, b)
				return missing(m, "known", b, found, err, o.quiet)
			})
		}
	}
	for _, r := range m.Rules {
		if o.rule == "" || o.rule == r.Name {
			all = append(all, func(ctx context.Context) said {
				found, err := s.Without(ctx, m, r)
				return missing(m, "without "+r.Name, r.Bounds, found, err, o.quiet)
			})
		}
	}
	return all
}

// missing says by which run a promise is broken, and that it is wrong if there is none.
func missing(m model.Model, kind string, b model.Bounds, found model.Found, err error, quiet bool) said {
	text := fmt.Sprintf("%s %s: %s\n", m.Name, kind, b.Says)
	if found.Wrong == "" {
		return said{text + fmt.Sprintf("  WRONG: no promise is broken (%d states)\n", found.States), true, err}
	}
	if !quiet {
		text += replay.Sequence(found.Trail)
	}
	return said{text + fmt.Sprintf("      broken: %s\n", found.Wrong), false, err}
}
