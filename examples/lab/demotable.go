package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cacheguard/go/examples/internal/program"
)

// table is the database of the demo, which its processes reach over HTTP: GET is a query, PUT a statement that nobody sees before the
// commit, POST the commit.
type table struct {
	takes time.Duration // a query

	mu      sync.Mutex
	rows    map[string]string
	staged  map[string]string
	queries int
	begun   chan struct{} // closed when the next query begins
	held    chan struct{} // not nil: queries wait until it is closed
}

func newTable() *table {
	return &table{
		takes: queryTime, rows: map[string]string{price: "19.99", right: "allowed"}, staged: make(map[string]string),
		begun: make(chan struct{}),
	}
}

// serve serves the table until the function that it returns is called.
func (t *table) serve() (address string, end func(), err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() { // owner: the caller; stop: end; joined there
		defer close(served)
		_ = s.Serve(listener) // http.ErrServerClosed
	}()
	return listener.Addr().String(), func() { _ = s.Close(); <-served }, nil
}

func (t *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Path[1:]
	switch r.Method {
	case http.MethodGet:
		value, held := t.query(key)
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
				return
			}
		}
		program.Pause(r.Context(), t.takes)
		_, _ = io.WriteString(w, value) // the process may have been killed
	case http.MethodPut:
		value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.staged[key] = string(value)
	case http.MethodPost:
		t.mu.Lock()
		defer t.mu.Unlock()
		maps.Copy(t.rows, t.staged)
		clear(t.staged)
	}
}

// query begins a query, which sees what is committed by now.
func (t *table) query(key string) (value string, held <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queries++
	close(t.begun)
	t.begun = make(chan struct{})
	return t.rows[key], t.held
}

func (t *table) asked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queries
}

func (t *table) row(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[key]
}

// hold has queries wait until release, which may be called twice.
func (t *table) hold() (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := make(chan struct{})
	t.held = held
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.held = nil
		close(held)
	})
}

// awaitQuery waits until more than so many queries have begun.
func (t *table) awaitQuery(ctx context.Context, before int) error {
	for {
		t.mu.Lock()
		n, begun := t.queries, t.begun
		t.mu.Unlock()
		if n > before {
			return nil
		}
		select {
		case <-begun:
		case <-ctx.Done():
			return errors.Join(errors.New("no query began"), ctx.Err())
		}
	}
}
