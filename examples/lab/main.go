// Lab is a page on which you can cause, watch and prevent a cache stampede: callers, instances of a service, Redis and a
// database with a small pool of connections, with charts of what happens to them. Open the address that it prints.
//
// Each instance has its own Guard and its own connections to Redis, which can be frozen and cut. The database is simulated.
// Redis is embedded, unless REDIS_URL names a real one. With -tour, Chromium goes through the page, and the program checks
// what the page shows. With -demo there is no page: in a minute, the program does by itself what the page is for, to two
// processes, and says what is seen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/tour"
)

func main() {
	if isProcess() {
		if err := follow(context.Background(), os.Stdin, os.Stdout); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, "lab:", err)
			os.Exit(program.Failed)
		}
		return
	}
	newProgram().Main()
}

// newProgram is the page, and the demo beside it.
func newProgram() program.Program {
	var (
		demo    bool
		pause   time.Duration
		picture string
	)
	p := page()
	flags, show := p.Flags, p.Run
	p.Flags = func(f *flag.FlagSet) {
		flags(f)
		f.BoolVar(&demo, "demo", false, "play it all in a minute, without a page, and say what is seen")
		f.DurationVar(&pause, "pause", 4*time.Second, "of the demo between two scenes, to read")
		f.StringVar(&picture, "picture", "", "draw what the demo says, as an SVG, into this `file`")
	}
	p.Short["pause"] = "0s"
	p.Run = func(ctx context.Context, out io.Writer) error {
		if demo {
			return playDemo(ctx, out, pause, picture)
		}
		return show(ctx, out)
	}
	return p
}

func page() program.Program {
	return tour.Page{
		Name:  "lab",
		About: "Lab shows a cache stampede, and what prevents it, on a page in your browser.",
		Port:  8642,
		Show: func(ctx context.Context, port int, run func(ctx context.Context, url string) error) error {
			return open(ctx, port, time.Second, settings{Hedge: true}, run)
		},
		Tour: runTour,
	}.Program()
}

// open opens Redis, a lab and its page, and closes them after run.
func open(ctx context.Context, port int, patience time.Duration, s settings, run func(ctx context.Context, url string) error) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	s.Mode, s.Callers, s.TTL = modeHand, 200, 10
	l, err := openLab(ctx, server, patience, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	return tour.Serve(ctx, port, handler(l), func(url string) error { return run(ctx, url) })
}
