// Lab is a page on which you can cause, watch and prevent a cache stampede: callers, instances of a service, Redis and a
// database with a small pool of connections, with charts of what happens to them. Open the address that it prints.
//
// Each instance has its own Guard and its own connections to Redis, which can be frozen and cut. The database is simulated.
// Redis is embedded, unless REDIS_URL names a real one. With -tour, Chromium goes through the page, and the program checks
// what the page shows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/program"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	var port int
	var tour string
	return program.Program{
		Name:  "lab",
		About: "Lab shows a cache stampede, and what prevents it, on a page in your browser.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&port, "port", 8642, "of the page; 0: any that is free")
			f.StringVar(&tour, "tour", "", "drive the page with Chromium, check what it shows, and write pictures to this `folder` (-: none)")
		},
		Short: map[string]string{"tour": "-"},
		Check: func() error { return nil },
		Run: func(ctx context.Context, out io.Writer) error {
			if tour != "" {
				return runTour(ctx, out, tour)
			}
			return open(ctx, port, 500*time.Millisecond, func(ctx context.Context, url string) error {
				_, err := fmt.Fprintf(out, "Open %s in your browser. Ctrl-C ends it.\n", url)
				if err == nil {
					<-ctx.Done()
				}
				return err
			})
		},
	}
}

// open opens Redis, a lab and its page, and closes them after run.
func open(ctx context.Context, port int, patience time.Duration, run func(ctx context.Context, url string) error) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	l, err := openLab(ctx, server, patience, settings{Mode: modeHand, Callers: 200, TTL: 10})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	return serve(ctx, l, port, run)
}
