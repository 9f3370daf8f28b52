package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// instance is one of the shop's processes: an HTTP server, a client of Redis and a seller of its own.
type instance struct {
	client *redis.Client
	seller seller
	orders *orders
	server *http.Server
	url    string
	done   chan struct{} // closed when the server has ended
}

func startInstance(ctx context.Context, w way, o opening, orders *orders) (*instance, error) {
	s, err := w.open(o)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	i := &instance{client: o.rdb, seller: s, orders: orders, url: "http://" + listener.Addr().String(), done: make(chan struct{})}
	i.server = &http.Server{Handler: i, ReadHeaderTimeout: 10 * time.Second}
	go func() { // owner: i; stop: Shutdown; joined by stop
		defer close(i.done)
		_ = i.server.Serve(listener) // http.ErrServerClosed
	}()
	return i, nil
}

// ServeHTTP answers an order: created, conflict (the user has one), gone (sold out), or unavailable.
func (i *instance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, err := strconv.Atoi(r.FormValue("user"))
	if err != nil {
		http.Error(w, "user must be a number", http.StatusBadRequest)
		return
	}
	err = i.seller.Sell(r.Context(), user)
	if err == nil {
		err = i.orders.add(r.Context(), user)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusCreated)
	case errors.Is(err, errAlready):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, errSoldOut):
		http.Error(w, err.Error(), http.StatusGone)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (i *instance) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := i.server.Shutdown(ctx)
	<-i.done
	return errors.Join(err, i.seller.Close(), i.client.Close())
}
