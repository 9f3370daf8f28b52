package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	configs "github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/memory"
)

// fleet is some instances of a service, with one handler.
type fleet struct {
	t      *testing.T
	prefix string
	guards []*cacheguard.Guard
	caches []*Cache
	urls   []string
	client *http.Client

	servers []*httptest.Server
	joined  atomic.Int64 // requests that wait for another of their instance

	mu      sync.Mutex
	results map[Result]int
}

// newFleet starts n instances in front of the handler.
func newFleet(t *testing.T, n int, cfg Config, handler http.Handler) *fleet {
	t.Helper()
	return newFleetOn(t, shared, n, cfg, cacheguard.Config{}, handler)
}

// newHurried starts an instance whose handler has little time.
func newHurried(t *testing.T, cfg Config, handler http.Handler) *fleet {
	t.Helper()
	return newFleetOn(t, shared, 1, cfg, cacheguard.Config{LoadTimeout: redistest.Brisk}, handler)
}

// inBubble returns a Guard in a bubble of synctest, whose time stands still while somebody waits for a network: so its Redis is in the process.
func inBubble(t *testing.T, cfg cacheguard.Config) *cacheguard.Guard {
	t.Helper()
	rdb, err := memory.New(memory.Config{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := cacheguard.New(rdb, cfg)
	if err != nil {
		t.Fatal(errors.Join(err, rdb.Close()))
	}
	t.Cleanup(func() { _ = errors.Join(guard.Close(), rdb.Close()) })
	return guard
}

// newFleetOn starts n instances on a server, with Guards of their own settings.
func newFleetOn(t *testing.T, redis *redistest.Server, n int, cfg Config, guarding cacheguard.Config, handler http.Handler) *fleet {
	t.Helper()
	f := &fleet{t: t, prefix: "test-" + rand.Text(), results: make(map[Result]int)}
	guarding.Prefix = f.prefix
	// On a busy machine, Redis may take more than 500 ms to answer 1024 requests at once, and a request that Redis does not answer calls
	// the handler. Tests that count calls must not depend on that.
	configs.SetDefault(&guarding.RedisTimeout, redistest.Patience)
	configs.SetDefault(&guarding.LeaseTTL, redistest.Patience)
	configs.SetDefault(&guarding.HedgeAfter, -1)
	guarding.Observers = append(slices.Clip(guarding.Observers), cacheguard.On(cacheguard.EventJoin, func(context.Context, cacheguard.Event) { f.joined.Add(1) }))
	cfg.OnResponse = func(_ *http.Request, res Response) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.results[res.Result]++
	}
	for range n {
		guard, err := cacheguard.New(redis.Client(t), guarding)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = guard.Close() }) // always nil
		cache, err := New(guard, cfg)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(cache.Handler(handler))
		t.Cleanup(server.Close)
		f.guards, f.caches = append(f.guards, guard), append(f.caches, cache)
		f.urls, f.servers = append(f.urls, server.URL), append(f.servers, server)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 200}
	t.Cleanup(transport.CloseIdleConnections)
	f.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// joinedNobody is called where nobody has joined yet who is to: the first request after warm may join its load, which is about to end, and begins
// one of its own after that.
func (f *fleet) joinedNobody() { f.joined.Store(0) }

// joins returns when n requests wait for another of their instance.
func (f *fleet) joins(n int64) {
	f.t.Helper()
	redistest.Await(f.t, "requests have joined", func() bool { return f.joined.Load() == n })
}

func (f *fleet) invalidate(path string) error {
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, path, nil)
	r.Host = host
	return f.caches[0].Invalidate(f.t.Context(), r)
}

func (f *fleet) count(r Result) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.results[r]
}

// waits returns when n instances wait for another instance's load of the page.
func (f *fleet) waits(path string, n int) {
	f.t.Helper()
	redistest.Await(f.t, "instances wait for "+path, func() bool { return f.registered(path) == n })
}

// warm gets a page and waits until it is stored.
func (f *fleet) warm(path string, header ...string) {
	f.t.Helper()
	f.get(path, header...)
	f.stored()
}

// front puts another handler in front of the cache of instance 0.
func (f *fleet) front(h http.Handler) { f.servers[0].Config.Handler = h }

// stored waits until what the handler made is stored: clients have it earlier.
func (f *fleet) stored() {
	f.t.Helper()
	redistest.AwaitNoLease(f.t, shared.Client(f.t), f.prefix)
}

// registered is how many instances wait for another instance's load of the page.
func (f *fleet) registered(path string) (waiting int) {
	rdb := shared.Client(f.t)
	keys, err := rdb.Keys(f.t.Context(), f.prefix+"*"+path+"*").Result()
	if err != nil {
		return 0
	}
	for _, key := range keys {
		fields, err := rdb.HKeys(f.t.Context(), key).Result()
		if err != nil {
			continue // not a lease
		}
		for _, field := range fields {
			if strings.HasPrefix(field, "inbox:") {
				waiting++
			}
		}
	}
	return waiting
}

// pageKey is the key of a page in the Guard.
func (f *fleet) pageKey(path string) string {
	return f.caches[0].names.PageKey("//" + host + path)
}

// host is the same for all instances, so that they have the same pages.
const host = "shop.example"

// answer is a response that was read to its end.
type answer struct {
	*http.Response
	body string
}

func (a answer) cacheStatus() string { return a.Header.Get("Cache-Status") }

// do sends a request to instance i; header is lines of Name: value.
func (f *fleet) do(i int, method, path string, header ...string) answer {
	f.t.Helper()
	a, err := f.try(i, method, path, header...)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

func (f *fleet) try(i int, method, path string, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.urls[i]+path, nil)
	if err != nil {
		return answer{}, err
	}
	r.Host = host
	for _, line := range header {
		name, value, _ := strings.Cut(line, ":")
		if name == "Host" {
			r.Host = strings.TrimSpace(value)
			continue
		}
		r.Header.Add(name, strings.TrimSpace(value))
	}
	res, err := f.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body)}, err
}

func (f *fleet) get(path string, header ...string) answer {
	f.t.Helper()
	return f.do(0, http.MethodGet, path, header...)
}

// async sends a GET to instance i.
func (f *fleet) async(i int, path string, header ...string) <-chan answer {
	c := make(chan answer, 1)
	go func() { // owner: the test; ends with the response; joined by receiving
		a, err := f.try(i, http.MethodGet, path, header...)
		if err != nil {
			a.body = err.Error()
		}
		c <- a
	}()
	return c
}
