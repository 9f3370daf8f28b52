package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

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
