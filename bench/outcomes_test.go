package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The functions below prepare outcomes: each returns one that has its outcome every time.

func countedGuard(t testing.TB, rdb cacheguard.Redis, cfg cacheguard.Config) *cacheguard.Guard {
	t.Helper()
	cfg.Prefix, cfg.Jitter, cfg.RedisTimeout = "counts", -1, redistest.Patience
	g, err := cacheguard.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	if err := g.SelfCheck(redistest.Patiently(t)); err != nil { // the subscription stands
		t.Fatal(err)
	}
	return g
}

func getting(t testing.TB, g *cacheguard.Guard, key string, load func(context.Context) ([]byte, error)) func() error {
	return func() error {
		_, err := cacheguard.Get(t.Context(), g, key, load)
		return err
	}
}

func loadValue(context.Context) ([]byte, error) { return []byte("value"), nil }

func hit(cfg cacheguard.Config) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		g := countedGuard(t, rdb, cfg)
		get := getting(t, g, rand.Text(), loadValue)
		if err := errors.Join(get(), get()); err != nil {
			t.Fatal(err)
		}
		return get
	}
}

func negative(t testing.TB, rdb *redis.Client) func() error {
	get := getting(t, countedGuard(t, rdb, cacheguard.Config{}), rand.Text(), func(context.Context) ([]byte, error) {
		return nil, cacheguard.ErrNotFound
	})
	return func() error {
		if err := get(); !errors.Is(err, cacheguard.ErrNotFound) {
			return errors.Join(errors.New("found"), err)
		}
		return nil
	}
}

func loaded(t testing.TB, rdb *redis.Client) func() error {
	g := countedGuard(t, rdb, cacheguard.Config{})
	return func() error { return getting(t, g, rand.Text(), loadValue)() }
}

// withoutRedis uses a port that refuses connections in place of Redis.
func withoutRedis(t testing.TB, _ *redis.Client) func() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // that it is free is all that was wanted
	rdb := redis.NewClient(&redis.Options{Addr: l.Addr().String(), DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	g, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "counts"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	get := getting(t, g, "k", loadValue)
	const enough = 100 // failures until Redis is left alone
	for range enough {
		if err := get(); err != nil {
			t.Fatal(err)
		}
	}
	return get
}

// sharedHere makes a second caller join the load of the first.
func sharedHere(t testing.TB, rdb *redis.Client) func() error {
	joined := make(chan struct{}, 1)
	g := countedGuard(t, rdb, cacheguard.Config{Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventJoin, func(context.Context, cacheguard.Event) { joined <- struct{}{} })}})
	return func() error {
		return beside(t, g, g, func() { <-joined })
	}
}

// sharedElsewhere makes another instance wait for the load.
func sharedElsewhere(own *redistest.Server, s *server.Server) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		first := countedGuard(t, rdb, cacheguard.Config{})
		second := countedGuard(t, own.Client(t), cacheguard.Config{})
		if err := getting(t, second, rand.Text(), loadValue)(); err != nil { // after SelfCheck, the first load asks for the epoch of all tags
			t.Fatal(err)
		}
		return func() error {
			before := scripts(t, s)
			return beside(t, first, second, func() {
				redistest.Await(t, "both have asked for the lease", func() bool { return scripts(t, s) == before+2 })
			})
		}
	}
}

// scripts is how many have run.
func scripts(t testing.TB, s *server.Server) int64 { return ran(t, s, "evalsha") }

// ran is how often a command has.
func ran(t testing.TB, s *server.Server, command string) int64 {
	t.Helper()
	u, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u.Commands[command]
}

// beside makes second ask for what first is loading, which ends when second has joined.
func beside(t testing.TB, first, second *cacheguard.Guard, joined func()) error {
	key, loading := rand.Text(), make(chan struct{})
	done := make(chan error, 1)
	go func() { // owner: beside; ends with the load; joined by receiving
		done <- getting(t, first, key, func(ctx context.Context) ([]byte, error) {
			close(loading)
			joined()
			return loadValue(ctx)
		})()
	}()
	<-loading
	return errors.Join(getting(t, second, key, neverLoad)(), <-done)
}

// staleOnce reads a value that is stale, and waits until its refresh has loaded.
func staleOnce(t testing.TB, rdb *redis.Client) func() error {
	refreshed := make(chan struct{}, 1)
	g := countedGuard(t, rdb, cacheguard.Config{TTL: ttl, StaleFor: ttl})
	return func() error {
		key := rand.Text()
		load := func(ctx context.Context) ([]byte, error) {
			cacheguard.SetTTL(ctx, time.Millisecond)
			return loadValue(ctx)
		}
		if err := getting(t, g, key, load)(); err != nil {
			return err
		}
		for {
			<-time.After(2 * time.Millisecond) // longer than it is fresh
			err := getting(t, g, key, func(ctx context.Context) ([]byte, error) {
				refreshed <- struct{}{}
				return loadValue(ctx)
			})()
			select {
			case <-refreshed:
				return err
			case <-time.After(100 * time.Millisecond): // it was answered by the load itself, which was still being stored
			}
			if err != nil {
				return err
			}
		}
	}
}

func invalidate(t testing.TB, rdb *redis.Client) func() error {
	g := countedGuard(t, rdb, cacheguard.Config{})
	return func() error { return g.Invalidate(t.Context(), "k") }
}

func update(t testing.TB, rdb *redis.Client) func() error {
	g := countedGuard(t, rdb, cacheguard.Config{})
	return func() error {
		return g.Update(t.Context(), "k", func(context.Context) error { return nil })
	}
}
