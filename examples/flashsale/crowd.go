package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// answers is what the crowd was told.
type answers struct {
	mu      sync.Mutex
	waits   []time.Duration
	failed  int
	failure string // the first
}

// crowd sends the users to the instances, that many at a time, and returns when the last was answered. One user in four clicks
// twice, at two instances at once.
func crowd(ctx context.Context, instances []*instance, clients, users int) (*answers, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * clients}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Transport: transport}
	a, queue := new(answers), make(chan int)
	var running sync.WaitGroup
	for range clients {
		running.Go(func() { // owner: crowd; stop: the queue is closed; joined below
			for user := range queue {
				var clicks sync.WaitGroup
				for click := range clicksOf(user) {
					at := instances[(user+click)%len(instances)]
					clicks.Go(func() { a.click(ctx, browser, at, user) }) // owner: the client; stop: ctx; joined below
				}
				clicks.Wait()
			}
		})
	}
	for user := 1; user <= users && ctx.Err() == nil; user++ {
		queue <- user
	}
	close(queue)
	running.Wait()
	return a, context.Cause(ctx)
}

func clicksOf(user int) int {
	if user%4 == 0 {
		return 2
	}
	return 1
}

func (a *answers) click(ctx context.Context, browser *http.Client, at *instance, user int) {
	start := time.Now()
	problem, err := order(ctx, browser, fmt.Sprintf("%s/orders?user=%d", at.url, user))
	if err != nil {
		problem = err.Error()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits = append(a.waits, time.Since(start))
	if problem == "" {
		return
	}
	if a.failed++; a.failure == "" {
		a.failure = problem
	}
}

// order returns what the shop said if that is neither an order nor a reason why there is none.
func order(ctx context.Context, browser *http.Client, url string) (problem string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := browser.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch response.StatusCode {
	case http.StatusCreated, http.StatusConflict, http.StatusGone:
		return "", err
	}
	return response.Status + ": " + strings.TrimSpace(string(text)), err
}

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
