package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/cacheguard/go/examples/internal/table"
)

// popular is the page that every other request is for.
const popular = "/products/42"

// paths are what the others are for, in turn.
var paths = []string{
	"/products/1", "/products/2", "/categories/3", "/products/4", "/products/5",
	"/products/6", "/products/7", "/categories/8", "/products/9", "/products/10",
}

// measured is what came of a load.
type measured struct {
	vegeta.Metrics
	calls   int // of handlers
	most    int // of them at once, for one page
	queries int64
}

// compare puts both fleets under load, one after the other.
func (s *settings) compare(ctx context.Context, out io.Writer, st stage) error {
	_, _ = fmt.Fprintf(out, "%d instances behind a proxy get %d requests a second, for %v, answered or not:\n"+
		"every other one for the same page, the rest for %d more. Each page expires after %v, and\n"+
		"is served while one instance makes it anew.\n"+
		"A handler asks the database once. The database is %s, %v a query; the cache is %s.\n\n",
		instances, s.rate, s.duration, len(paths), freshFor, st.db, s.query, st.redis)
	bare, err := s.measure(ctx, st, false)
	if err != nil {
		return err
	}
	cached, err := s.measure(ctx, st, true)
	if err != nil {
		return err
	}
	table.Write(out, rowsOf(bare, cached))
	if why := broken(bare, cached); why != "" {
		return fmt.Errorf("NOT AS PROMISED: %s", why)
	}
	_, _ = fmt.Fprintf(out, "\nOf 1,000 requests, %s reached a handler, and never two for one page at once, on whatever instance.\n",
		table.Ratio(1000*float64(cached.calls)/float64(cached.Requests)))
	return nil
}

// measure puts a fleet under load.
func (s *settings) measure(ctx context.Context, st stage, cached bool) (m measured, err error) {
	f, err := st.start(ctx, 0, cached)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	before := st.shop.queries.Load()
	m.Metrics = s.load(ctx, f.url)
	m.queries = st.shop.queries.Load() - before
	m.calls, m.most = f.calls.counted()
	return m, context.Cause(ctx)
}

// load is an open loop: a request is sent when it is due, whether those before it have been answered or not, as users do.
func (s *settings) load(ctx context.Context, base string) (m vegeta.Metrics) {
	var targets []vegeta.Target
	for _, path := range paths {
		targets = append(targets,
			vegeta.Target{Method: http.MethodGet, URL: base + popular}, vegeta.Target{Method: http.MethodGet, URL: base + path})
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	defer transport.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: transport, Timeout: 30 * time.Second}))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	rate := vegeta.Rate{Freq: s.rate, Per: time.Second}
	for r := range attacker.Attack(vegeta.NewStaticTargeter(targets...), rate, s.duration, "") {
		m.Add(r)
	}
	m.Close()
	return m
}

func rowsOf(bare, cached measured) [][]string {
	row := func(label string, of func(measured) string) []string { return []string{label, of(bare), of(cached)} }
	return [][]string{
		{"", "without", "with the middleware"},
		row("requests", func(m measured) string { return table.Count(int64(m.Requests)) }),
		row("failed", func(m measured) string { return table.Count(m.failed()) }),
		row("handler calls", func(m measured) string { return table.Count(m.calls) }),
		row("most at once for one page", func(m measured) string { return table.Count(m.most) }),
		row("database queries", func(m measured) string { return table.Count(m.queries) }),
		row("time of a request, p50", func(m measured) string { return table.Millis(m.Latencies.P50) }),
		row("time of a request, p99", func(m measured) string { return table.Millis(m.Latencies.P99) }),
	}
}

// failed returns how many requests had no page.
func (m measured) failed() int64 { return int64(m.Requests) - int64(m.StatusCodes["200"]) }

// broken says why the load is not what the middleware promises: an answer for each request, and one call for each page at
// a time.
func broken(bare, cached measured) string {
	switch {
	case cached.failed() > 0:
		return fmt.Sprintf("%d requests failed with the middleware: %v", cached.failed(), cached.Errors)
	case cached.most > 1:
		return fmt.Sprintf("%d handlers made one page at once", cached.most)
	case cached.calls >= bare.calls:
		return fmt.Sprintf("%d handler calls with the middleware, %d without", cached.calls, bare.calls)
	}
	return ""
}

// calls counts calls of handlers, over all instances.
type calls struct {
	mu      sync.Mutex
	total   int
	running map[string]int // by path
	most    int            // at once, for one path
}

func newCalls() *calls { return &calls{running: make(map[string]int)} }

func (c *calls) begin(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.running[path]++
	c.most = max(c.most, c.running[path])
}

func (c *calls) end(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[path]--
}

// counted is a handler whose calls are counted.
func (a *api) counted(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.calls.begin(r.URL.Path)
		defer a.calls.end(r.URL.Path)
		h(w, r)
	}
}

// counted returns what was counted so far.
func (c *calls) counted() (total, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, c.most
}
