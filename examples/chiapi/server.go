package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

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
