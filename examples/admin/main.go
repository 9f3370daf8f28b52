// Admin shows the page of package admin, mounted in a chi router under a path, for a small shop with callers. Open the address that it
// prints. Redis is embedded, unless REDIS_URL names a real one. With -tour, Chromium goes through the page, and the program checks what it
// shows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/program"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	var port int
	var tour string
	return program.Program{
		Name:  "admin",
		About: "Admin shows what the caches and locks of a process are doing, on a page in your browser.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&port, "port", 8643, "of the page; 0: any that is free")
			f.StringVar(&tour, "tour", "", "drive the page with Chromium, check what it shows, and write pictures to this `folder` (-: none)")
		},
		Short: map[string]string{"tour": "-"},
		Check: func() error { return nil },
		Run: func(ctx context.Context, out io.Writer) error {
			if tour != "" {
				return open(ctx, 0, func(ctx context.Context, s *shop, url string) error { return runTour(ctx, s, out, tour, url) })
			}
			return open(ctx, port, func(ctx context.Context, _ *shop, url string) error {
				_, err := fmt.Fprintf(out, "Open %s in your browser. Ctrl-C ends it.\n", url)
				if err == nil {
					<-ctx.Done()
				}
				return err
			})
		},
	}
}

// router is that of a service: its pages, and the page for the person on call under a path of its own.
func (s *shop) router() http.Handler {
	r := chi.NewRouter()
	r.With(s.pages.Handler).Get("/products", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=2")
		_, _ = io.WriteString(w, "products") // who does not read it does not want it
	})
	panel := admin.Config{
		Guards: []*cacheguard.Guard{s.guard}, Lockers: s.jobs.lockers(), Pages: []admin.Pages{s.pages},
		Allow: func(*http.Request, admin.Action) bool { return true }, // this machine only
	}
	r.Mount("/debug/cacheguard", panel.Handler())
	return r
}

// open opens the shop and its pages on a port of this machine, and closes them after run.
func open(ctx context.Context, port int, run func(ctx context.Context, s *shop, url string) error) (err error) {
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("-port: %w", err)
	}
	server := &http.Server{Handler: s.router(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() { // owner: open; stop: Close; joined below
		defer close(served)
		_ = server.Serve(listener) // http.ErrServerClosed
	}()
	defer func() {
		err = errors.Join(err, server.Close())
		<-served
	}()
	return run(ctx, s, "http://"+listener.Addr().String()+"/debug/cacheguard")
}
