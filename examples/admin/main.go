// Admin shows the page of package admin, mounted in a chi router under a path, for a small shop with callers. Open the address that it
// prints. Redis is embedded, unless REDIS_URL names a real one. With -tour, Chromium goes through the page, and the program checks what it
// shows.
package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/tour"
)

func main() { newProgram().Main() }

func newProgram() program.Program {
	return tour.Page{
		Name:  "admin",
		About: "Admin shows what the caches and locks of a process are doing, on a page in your browser.",
		Port:  8643,
		Show: func(ctx context.Context, port int, run func(ctx context.Context, url string) error) error {
			return open(ctx, port, func(ctx context.Context, _ *shop, url string) error { return run(ctx, url) })
		},
		Tour: runTour,
	}.Program()
}

// router serves the pages of the service and, under a path of its own, the page for the person on call.
func (s *shop) router() http.Handler {
	r := chi.NewRouter()
	r.With(s.pages.Handler).Get("/products", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=2")
		_, _ = io.WriteString(w, "products") // a client that does not read it does not want it
	})
	panel := admin.NewHandler(admin.Config{
		Guards: []*cacheguard.Guard{s.guard}, Lockers: s.jobs.lockers(), Pages: []admin.Pages{s.pages},
		// The port is open to this machine only: to all of its users and programs. A service asks here who sent the request, and names the
		// host that people ask for in Hosts. Sites that a browser of this machine visits stay out, as they have other names.
		Allow: func(*http.Request, admin.Action) bool { return true },
	})
	r.Mount("/debug/cacheguard", panel)
	return r
}

// open opens the shop and its pages on a port of this machine, and closes them after run.
func open(ctx context.Context, port int, run func(ctx context.Context, s *shop, url string) error) (err error) {
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return tour.Serve(ctx, port, s.router(), func(url string) error { return run(ctx, s, url+"/debug/cacheguard") })
}
