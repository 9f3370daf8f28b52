package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/middleware"
)

// settings are those the suite is run with. The suite stores cookies and expects heuristic freshness, as shared caches may.
var settings = middleware.Config{StoreSetCookie: true, Heuristic: 0.1, SortAccept: true}

// patience is how long Redis may take: longer than any machine is busy.
const patience = time.Minute

// measure runs the suite's client against the middleware, with ReverseProxy behind it and the suite's server as the origin.
func measure(ctx context.Context, s suite, cfg middleware.Config) (results map[string]json.RawMessage, err error) {
	store, err := server.Start()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	rdb := redis.NewClient(store.Options())
	defer rdb.Close()
	// The suite counts the calls of its origin. A Redis that is slow, as on a busy machine, must cause none: neither beside it nor, when the
	// breaker opens, instead of it.
	patient := cacheguard.Config{Prefix: "conformance", RedisTimeout: patience, LeaseTTL: patience, HedgeAfter: -1}
	guard, err := cacheguard.New(rdb, patient)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	cache, err := middleware.New(guard, cfg)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	originCtx, stop := context.WithCancel(ctx)
	ended, err := s.serve(originCtx, port)
	if err != nil {
		stop()
		return nil, err
	}
	defer func() {
		stop()
		<-ended //nolint:errcheck // it was told to end
	}()
	origin := &url.URL{Scheme: "http", Host: fmt.Sprintf("localhost:%d", port)}
	if err := awaitOrigin(ctx, origin.Host, ended); err != nil {
		return nil, err
	}
	front, err := listen(ctx, cache.Handler(proxy(origin)))
	if err != nil {
		return nil, err
	}
	defer front.stop()
	return s.ask(ctx, "http://"+front.addr)
}

func proxy(origin *url.URL) http.Handler {
	p := httputil.NewSingleHostReverseProxy(origin)
	p.Transport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	p.ErrorLog = log.New(io.Discard, "", 0) // the suite breaks connections off
	return p
}

// front is the server that the suite's client talks to.
type front struct {
	addr string
	stop func()
}

func listen(ctx context.Context, h http.Handler) (*front, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { // owner: the front; stop: Close; joined by stop
		defer close(done)
		_ = srv.Serve(l) // it ends with Close
	}()
	return &front{addr: l.Addr().String(), stop: func() { _ = srv.Close(); <-done }}, nil
}

// freePort is one that was free a moment ago. The suite's server takes a number, not a socket.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// awaitOrigin waits until the suite's server listens.
func awaitOrigin(ctx context.Context, host string, ended <-chan error) error {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the suite's server ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
