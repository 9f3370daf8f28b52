package tour

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/cacheguard/go/examples/internal/program"
)

// A Page is an example that shows a page of its own, in the reader's browser, or with -tour in Chromium.
type Page struct {
	Name  string
	About string // one sentence for -h
	Port  int    // where -port does not say so

	// Show opens the page on a port of this machine, on any that is free if that is 0, and closes it after run.
	Show func(ctx context.Context, port int, run func(ctx context.Context, url string) error) error
	// Tour goes through the page, and checks what it shows. The folder is for Browse.
	Tour func(ctx context.Context, out io.Writer, folder string) error
}

// Program is the example as a command.
func (p Page) Program() program.Program {
	var port int
	var tour string
	return program.Program{
		Name: p.Name, About: p.About,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&port, "port", p.Port, "of the page; 0: any that is free")
			f.StringVar(&tour, "tour", "", "drive the page with Chromium, check what it shows, and write pictures to this `folder` (-: none)")
		},
		Short: map[string]string{"tour": "-"},
		Check: func() error { return nil },
		Run: func(ctx context.Context, out io.Writer) error {
			if tour != "" {
				return p.Tour(ctx, out, tour)
			}
			return p.Show(ctx, port, func(ctx context.Context, url string) error {
				_, err := fmt.Fprintf(out, "Open %s in your browser. Ctrl-C ends it.\n", url)
				if err == nil {
					<-ctx.Done()
				}
				return err
			})
		},
	}
}

// Serve serves a page on a port of this machine, until run returns.
func Serve(ctx context.Context, port int, page http.Handler, run func(url string) error) (err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("-port: %w", err)
	}
	streams, end := context.WithCancel(ctx)
	s := &http.Server{
		Handler: page, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return streams },
	}
	served := make(chan struct{})
	go func() { // owner: Serve; stop: Shutdown; joined below
		defer close(served)
		_ = s.Serve(listener) // http.ErrServerClosed
	}()
	defer func() {
		end()
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = errors.Join(err, s.Shutdown(patience), s.Close())
		<-served
	}()
	return run("http://" + listener.Addr().String())
}
