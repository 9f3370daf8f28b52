package admin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

func newGuard(t *testing.T, cfg cacheguard.Config) *cacheguard.Guard {
	t.Helper()
	if cfg.Prefix == "" {
		cfg.Prefix = "test-" + rand.Text()
	}
	config.SetDefault(&cfg.RedisTimeout, redistest.Patience)
	config.SetDefault(&cfg.HedgeAfter, -1)
	g, err := cacheguard.New(shared.Client(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() }) // always nil
	return g
}

func newMutex(t *testing.T) *mutex.Locker {
	t.Helper()
	k, err := mutex.New(shared.Client(t), mutex.Config{RedisTimeout: redistest.Patience, Prefix: "test-" + rand.Text(), Instance: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func newRWLock(t *testing.T) *rwlock.Locker {
	t.Helper()
	k, err := rwlock.New(shared.Client(t), rwlock.Config{RedisTimeout: redistest.Patience, Prefix: "test-" + rand.Text(), Instance: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func newSemaphore(t *testing.T, permits int) *semaphore.Locker {
	t.Helper()
	k, err := semaphore.New(shared.Client(t), semaphore.Config{RedisTimeout: redistest.Patience, Prefix: "test-" + rand.Text(), Instance: "shop-1", Permits: permits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() }) // always nil
	return k
}

func newQuorum(t *testing.T) *mutex.Quorum {
	t.Helper()
	var servers []mutex.Redis
	for range 3 {
		servers = append(servers, redistest.Start(t).Client(t))
	}
	q, err := mutex.NewQuorum(servers, mutex.Config{RedisTimeout: redistest.Patience, Prefix: "test-" + rand.Text(), Instance: "shop-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() }) // always nil
	return q
}

func everything(*http.Request, Action) bool { return true }

// here is where the Handler is, for tests.
const here = "http://localhost"

// get asks the Handler, and wants the status.
func get(t *testing.T, h http.Handler, url string, status int) (body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, here+url, nil))
	if w.Code != status {
		t.Errorf("GET %s: %d, want %d: %s", url, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// look is what the Handler shows, as of now.
func look(t *testing.T, h *Handler) (s state) {
	t.Helper()
	h.shown.mu.Lock()
	h.shown.text = nil
	h.shown.sampled = h.shown.sampled.Add(-pause) // as if it were time
	h.shown.mu.Unlock()
	parse(t, get(t, h, "/?view=data", http.StatusOK), &s)
	return s
}

func parse(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// post sends an action as the page does, unless change does something to it.
func post(h *Handler, do, body string, change func(*http.Request)) (status int, answer string) {
	r := httptest.NewRequest(http.MethodPost, here+"/?do="+do, strings.NewReader(body))
	r.Header.Set(tokenHeader, h.token)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	said, _ := io.ReadAll(w.Body) // of memory
	return w.Code, string(said)
}

// keep waits until the key is in the cache.
func keep(t *testing.T, g *cacheguard.Guard, key string) {
	t.Helper()
	redistest.Await(t, "the value is in the cache", func() bool {
		_, how, err := cacheguard.Fetch(t.Context(), g, key, cacheguard.Source[string]{Load: func(ctx context.Context, _ *string) (string, error) {
			cacheguard.SetTags(ctx, "all")
			return "value", nil
		}})
		return err == nil && how == cacheguard.Hit
	})
}

func isCached(t *testing.T, g *cacheguard.Guard, key string) bool {
	t.Helper()
	i, err := g.Inspect(t.Context(), key)
	expect.ErrorIs(t, err)
	return i.State == cacheguard.EntryFresh
}
