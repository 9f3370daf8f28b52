// Catalogue is a small, realistic service: products in a database, lists, a search and a cart, in JSON, cached. Read it in this
// order:
//
//   - store.go is the database, and does not know about the cache.
//   - caches.go says what is cached, for how long, and under which tags.
//   - catalogue.go reads through the caches, and writes with Put, Update and tags.
//   - api.go is the handlers, and what errors mean to clients.
//   - service.go puts it together, with metrics, health and a graceful stop.
//   - catalogue_test.go tests it on an in-process Redis, and past the cache; deployment_test.go with a struct that has changed.
//
// It needs nothing but Go. REDIS_URL and DATABASE_URL name a real Redis and a real PostgreSQL to use instead.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
	"github.com/cacheguard/go/examples/internal/program"
)

// settings are what the flags say.
type settings struct {
	port  int
	query time.Duration
	tour  bool
}

func main() { new(settings).program().Main() }

func (s *settings) program() program.Program {
	return program.Program{
		Name: "catalogue", About: "Catalogue is a small service whose products, lists and searches are cached.",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.port, "port", 8080, "`number` of the port (0: any)")
			f.DurationVar(&s.query, "query", 50*time.Millisecond, "how long a database query takes")
			f.BoolVar(&s.tour, "tour", false, "make the requests that are there to try, and end")
		},
		Short: map[string]string{"tour": "true", "port": "0", "query": "5ms"},
		Check: func() error {
			switch {
			case s.port < 0 || s.port > 65535:
				return fmt.Errorf("-port: %d is not between 0 and 65535", s.port)
			case s.query < 0 || s.query > time.Second:
				return fmt.Errorf("-query: %v is not between 0 and 1s", s.query)
			}
			return nil
		},
		Run: func(ctx context.Context, out io.Writer) error {
			return sqldb.With(ctx, func(server *backends.RedisServer, db *sqldb.DB) error { return s.run(ctx, out, server, db) })
		},
	}
}

// run runs the service until ctx ends. It closes first what it opened last.
func (s *settings) run(ctx context.Context, out io.Writer, server *backends.RedisServer, db *sqldb.DB) (err error) {
	log := slog.New(slog.NewTextHandler(out, nil))
	database, err := openStore(ctx, db, s.query, log)
	if err != nil {
		return err
	}
	// A service of yours has a prefix of its own, and keeps what is cached. This one leaves nothing on your Redis.
	prefix := "catalogue-" + strings.ToLower(rand.Text()[:10])
	defer func() { err = errors.Join(err, server.Delete(context.WithoutCancel(ctx), prefix+":")) }()
	rdb := server.NewClient()
	defer rdb.Close()
	service, err := newService(database, rdb, prefix, log)
	if err != nil {
		return err
	}
	defer service.Close()
	if err := service.catalogue.guard.SelfCheck(ctx); err != nil {
		log.WarnContext(ctx, "the cache does not work as it should", "error", err) // names what is missing; the service works
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return fmt.Errorf("-port: %w", err)
	}
	url := "http://" + listener.Addr().String()
	_, _ = fmt.Fprintf(out, "A catalogue of %d products; the database is %s, %v a query; the cache is %s.\n", products, db, s.query, server)
	if s.tour {
		return tour(ctx, out, url, func(ctx context.Context) error { return serve(ctx, listener, service.handler) })
	}
	_, _ = fmt.Fprintf(out, "Each query is logged, so you see which requests need none. Try, twice each:\n\n")
	for _, t := range try {
		_, _ = fmt.Fprintf(out, "  %-75s # %s\n", t.curl(url), t.what)
	}
	_, _ = fmt.Fprintf(out, "  %-75s # %s\n\nCtrl-C ends it.\n\n", "curl "+url+"/metrics", "what Prometheus gets")
	return serve(ctx, listener, service.handler)
}

// request is something to try.
type request struct{ method, path, body, what string }

var try = []request{
	{"GET", "/products/42", "", "a query, and then none for ten minutes"},
	{"GET", "/products/4242", "", "absence is remembered, for a minute"},
	{"GET", "/categories/boots", "", "a list, and its products in one query"},
	{"GET", "/cart?ids=1,2,42", "", "one query for the products that are missing"},
	{"GET", "/search?q=red+boot", "", "a search, for half a minute"},
	{"PUT", "/products/42/price?cents=1", "", "a Put, so that the first one above needs no query"},
	{"PUT", "/products/42", `{"name": "Red boot", "category": "boots", "cents": 1}`, "moves it from sandals to boots: both lists change"},
	{"POST", "/categories/boots/discount?percent=10", "", "all boots are invalidated by their tag"},
	{"DELETE", "/products/42", "", "is gone from lists and searches"},
}

func (q request) curl(url string) string {
	var command strings.Builder
	command.WriteString("curl ")
	if q.method != http.MethodGet {
		command.WriteString("-X " + q.method + " ")
	}
	if q.body != "" {
		command.WriteString("-d '" + q.body + "' ")
	}
	return command.String() + "'" + url + q.path + "'"
}

// tour runs the service, makes all requests twice, and stops it.
func tour(ctx context.Context, out io.Writer, url string, serve func(context.Context) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }() // owner: tour; stop: ctx; joined below
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		err = errors.Join(err, <-ended)
	}()
	for _, q := range append(try, request{"GET", "/health", "", "for the load balancer"}) {
		for range 2 {
			status, body, err := q.do(ctx, url)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "%s %s: %d %.100s\n", q.method, q.path, status, strings.TrimSpace(body))
			if status >= http.StatusInternalServerError {
				return fmt.Errorf("%s %s: %d", q.method, q.path, status)
			}
		}
	}
	return nil
}

func (q request) do(ctx context.Context, url string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, q.method, url+q.path, strings.NewReader(q.body))
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}
