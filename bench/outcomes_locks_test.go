package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

func lockAndUnlock[L interface{ Unlock(context.Context) error }](t testing.TB, lock func(context.Context, string) (L, error)) func() error {
	return func() error {
		l, err := lock(t.Context(), "k")
		if err != nil {
			return err
		}
		return l.Unlock(t.Context())
	}
}

func lockMutex(cfg mutex.Config) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		cfg.Prefix, cfg.RedisTimeout = "counts:"+rand.Text(), redistest.Patience
		k, err := mutex.New(rdb, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Close() })
		return lockAndUnlock(t, k.Lock)
	}
}

type takeLock func(context.Context, string) (unlock func(context.Context) error, err error)

func mutexes(t testing.TB, client *redis.Client, prefix string) takeLock {
	k, err := mutex.New(client, mutex.Config{RedisTimeout: redistest.Patience, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return locking(k.Lock)
}

func writers(t testing.TB, client *redis.Client, prefix string) takeLock {
	k, err := rwlock.New(client, rwlock.Config{RedisTimeout: redistest.Patience, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return locking(k.Lock)
}

// pass makes a locker wait for another's lock, which then passes to it, back and forth.
func pass(
	own *redistest.Server, s *server.Server, newLocker func(testing.TB, *redis.Client, string) takeLock,
) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		prefix := "counts:" + rand.Text()
		lockers := []takeLock{newLocker(t, rdb, prefix), newLocker(t, own.Client(t), prefix)}
		held, err := lockers[0](t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		next := 1
		pass := func() error {
			before, done := scripts(t, s), make(chan error, 1)
			unlock := held
			go func() { // owner: pass; ends with the lock; joined by receiving
				var err error
				held, err = lockers[next](t.Context(), "k")
				done <- err
			}()
			redistest.Await(t, "it has asked", func() bool { return scripts(t, s) > before })
			err := errors.Join(unlock(t.Context()), <-done)
			next = 1 - next
			return err
		}
		redistest.Await(t, "both are told", func() bool { // when they are subscribed
			before := ran(t, s, "publish")
			if err := errors.Join(pass(), pass()); err != nil {
				t.Fatal(err)
			}
			return ran(t, s, "publish") == before+2
		})
		return pass
	}
}

func lockRW(lock func(*rwlock.Locker, context.Context, string) (*rwlock.Lease, error)) func(testing.TB, *redis.Client) func() error {
	return func(t testing.TB, rdb *redis.Client) func() error {
		k, err := rwlock.New(rdb, rwlock.Config{RedisTimeout: redistest.Patience, Prefix: "counts:" + rand.Text()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Close() })
		return lockAndUnlock(t, func(ctx context.Context, name string) (*rwlock.Lease, error) { return lock(k, ctx, name) })
	}
}

func lockSemaphore(t testing.TB, rdb *redis.Client) func() error {
	k, err := semaphore.New(rdb, semaphore.Config{RedisTimeout: redistest.Patience, Prefix: "counts:" + rand.Text(), Permits: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return lockAndUnlock(t, k.Lock)
}
