package segment

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const name = "sale"

// patient is a time-out that no test waits for.
const patient = redistest.Patience

// newCounter returns a Counter with a prefix of its own, unless the Config has one.
func newCounter(tb testing.TB, rdb Redis, cfg Config) *Counter {
	tb.Helper()
	if cfg.Prefix == "" {
		cfg.Prefix = "test-" + rand.Text()
	}
	config.SetDefault(&cfg.RedisTimeout, patient)
	c, err := New(rdb, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() }) // always nil
	return c
}

// newStock returns a Counter with that many segments and units.
func newStock(t *testing.T, rdb Redis, segments int, units int64) *Counter {
	t.Helper()
	c := newCounter(t, rdb, Config{Segments: segments})
	ok(t, c.Create(t.Context(), name, units))
	return c
}

// another returns a Counter on the same units.
func another(t *testing.T, c *Counter, rdb Redis) *Counter {
	t.Helper()
	return newCounter(t, rdb, c.cfg)
}

func newProxied(t *testing.T, c *Counter) (*Counter, *redistest.Proxy) {
	t.Helper()
	p := redistest.StartProxy(t, shared.Addr())
	return another(t, c, p.Client(t, redistest.AsksAgain)), p
}

// scripts by their names.
var scripts = map[string]redistest.Match{
	"create": redistest.Script(createScript.Source()),
	"take":   redistest.Script(takeScript.Source()),
	"undo":   redistest.Script(undoScript.Source()),
	"put":    redistest.Script(putScript.Source()),
	"send":   redistest.Script(sendScript.Source()),
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantTotal(t *testing.T, c *Counter, want int64) {
	t.Helper()
	if got, err := c.Total(context.Background(), name); got != want || err != nil {
		t.Errorf("total %d, %v; want %d", got, err, want)
	}
}

func lookAt(t *testing.T, c *Counter) *snapshot {
	t.Helper()
	s, err := c.snapshot(t.Context(), name)
	ok(t, err)
	return s
}

// shift moves units from one segment to another.
func shift(t *testing.T, c *Counter, from, to int, units int64) {
	t.Helper()
	ok(t, c.carryOut(t.Context(), name, lookAt(t, c).until, []move{newMove(from, to, units)}))
}

func newMove(from, to int, units int64) move {
	return move{id: rand.Text(), from: from, to: to, units: units}
}

func takeAsync(ctx context.Context, c *Counter, n int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Take(ctx, name, n) }() // owner: the test; ends with the Take; joined by receiving
	return done
}

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }
