package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	chiware "github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/metrics"
	"github.com/cacheguard/go/middleware"
)

// instance is one of the API's processes, as it were: an HTTP server, a client of Redis, a Guard and metrics of its own.
type instance struct {
	*server
	client *redis.Client
	guard  *cacheguard.Guard
}

// startInstance starts one. Uncached, it has a Guard that nobody asks.
func (f *fleet) startInstance(ctx context.Context, st stage, number, port int, cached bool) (_ *instance, err error) {
	i := &instance{client: st.redis.NewClient()}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.stop())
		}
	}()
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{Routes: []string{productRoute, categoryRoute}})
	if err != nil {
		return nil, err
	}
	i.guard, err = cacheguard.New(i.client, cacheguard.Config{
		Prefix: f.prefix, RedisTimeout: backends.Patience, Observers: []cacheguard.Observer{m.Guard("pages")},
	})
	if err != nil {
		return nil, err
	}
	m.Watch("pages", i.guard)
	pages, err := middleware.New(i.guard, middleware.Config{OnResponse: m.HTTP("pages")})
	if err != nil {
		return nil, err
	}
	a := &api{shop: st.shop, calls: f.calls}
	if cached {
		a.pages = pages
	}
	r := chi.NewRouter()
	r.Use(named(number))   // in front of the cache: what it adds is not stored
	r.Use(chiware.GetHead) // chi has HEAD refused where there is but a Get, also for `curl -I`
	r.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	r.Group(a.routes)
	i.server, err = listen(ctx, port, r)
	return i, err
}

// named says which instance has answered.
func named(number int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Instance", strconv.Itoa(number))
			next.ServeHTTP(w, r)
		})
	}
}

// stop stops what was started. Handlers end before the Guard is closed, and the Guard before its client.
func (i *instance) stop() error {
	var errs []error
	if i.server != nil {
		errs = append(errs, i.server.stop())
	}
	if i.guard != nil {
		errs = append(errs, i.guard.Close())
	}
	return errors.Join(append(errs, i.client.Close())...)
}

// server is an HTTP server on a port of this machine.
type server struct {
	http *http.Server
	url  string
	done chan struct{} // closed when it has ended
}

// listen starts a server. Port 0 is any that is free.
func listen(ctx context.Context, port int, h http.Handler) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("-port: %w", err)
	}
	s := &server{
		http: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second},
		url:  "http://" + listener.Addr().String(),
		done: make(chan struct{}),
	}
	go func() { // owner: s; stop: Shutdown or Close; joined by stop
		defer close(s.done)
		_ = s.http.Serve(listener) // http.ErrServerClosed
	}()
	return s, nil
}

// stop lets the requests end that have begun, but not for long.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return err
}
