package cas

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// newStore returns a Store with a prefix of its own, unless the Config has one.
func newStore(tb testing.TB, rdb Redis, cfg Config) *Store {
	tb.Helper()
	if cfg.Prefix == "" {
		cfg.Prefix = "test-" + rand.Text()
	}
	config.SetDefault(&cfg.RedisTimeout, patient)
	s, err := New(rdb, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() }) // always nil
	return s
}

// patient is a time-out that no test waits for.
const patient = redistest.Patience

// pair is a Store behind a proxy, and another one that is not.
type pair struct {
	near, far *Store
	proxy     *redistest.Proxy
	redis     *redis.Client // to look around with
}

func newPair(t *testing.T, s *redistest.Server, timeout time.Duration) pair {
	t.Helper()
	p := pair{proxy: redistest.StartProxy(t, s.Addr()), redis: s.Client(t)}
	p.far = newStore(t, p.redis, Config{})
	p.near = newStore(t, p.proxy.Client(t, redistest.AsksAgain), Config{Prefix: p.far.cfg.Prefix, RedisTimeout: timeout})
	return p
}

var (
	swaps   = redistest.Script(swapScript.Source())
	deletes = redistest.Script(deleteScript.Source())
)

func create[V any](t *testing.T, s *Store, key string, value V) Version {
	t.Helper()
	return mustSwap(t, s, key, "", value)
}

func mustSwap[V any](t *testing.T, s *Store, key string, old Version, value V) Version {
	t.Helper()
	version, err := Swap(t.Context(), s, key, old, value)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func wantValue[V comparable](t *testing.T, s *Store, key string, want V, version Version) {
	t.Helper()
	got, at, err := Get[V](context.Background(), s, key)
	if err != nil || got != want || at != version {
		t.Errorf("%q: %v at %q, %v; want %v at %q", key, got, at, err, want, version)
	}
}

// done is what a Swap in the background returned.
type done struct {
	version Version
	err     error
}

func swapAsync(ctx context.Context, s *Store, key string, old Version, value string) <-chan done {
	c := make(chan done, 1)
	go func() { // owner: the test; ends with the Swap; joined by receiving
		version, err := Swap(ctx, s, key, old, value)
		c <- done{version, err}
	}()
	return c
}

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }
