package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	chiware "github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/metrics"
)

// requestTimeout ends requests that nobody waits for any more. A load goes on for as long as one of its callers does.
const requestTimeout = 10 * time.Second

// service is a process of the catalogue.
type service struct {
	catalogue *catalogue
	handler   http.Handler
}

// newService puts a service together. Without a client of Redis nothing is cached. Its user closes it, and then the client.
func newService(s *store, rdb *redis.Client, prefix string, log *slog.Logger) (*service, error) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		return nil, err
	}
	kinds, err := newCaches(s, rdb, prefix, m.Guard("catalogue"), log)
	if err != nil {
		return nil, err
	}
	m.Watch("catalogue", kinds.guard)
	c := &catalogue{s, kinds, log}

	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	r.Get("/health", c.health)
	r.Group(func(r chi.Router) {
		r.Use(chiware.Timeout(requestTimeout))
		(&api{c}).routes(r)
	})
	return &service{c, r}, nil
}

// Close ends what the Guard does.
func (s *service) Close() error { return s.catalogue.guard.Close() }

// health is for the load balancer. Without its database the service cannot work. Without Redis it can: then it loads as much as
// MaxLoads allows, and an alert on cacheguard_breakers_open is what wakes somebody.
func (c *catalogue) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := c.store.db.PingContext(ctx); err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	stats := c.guard.Stats()
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client has left
		"status": "ok", "loading": stats.Loading, "invalidations_pending": stats.Pending, "subscribed": stats.Subscribed,
	})
}

// serve serves requests until ctx ends. Then it takes no more, and lets those end that have begun.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }() // owner: serve; stop: Shutdown or Close; joined below
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
