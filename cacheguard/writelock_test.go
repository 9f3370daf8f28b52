package cacheguard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

// newWriteLocked is a fleet whose updates hold a lock on a Redis of its own.
func newWriteLocked(t *testing.T, cfg Config, lock mutex.Config) (f *fleet, lockServer *redistest.Server) {
	t.Helper()
	lockServer = redistest.Start(t)
	cfg.WriteLock, cfg.RedisTimeout = newLocks(t, lockServer, lock), 20*time.Second
	return newFleet(t, standalone(t), 2, cfg), lockServer
}

func newLocks(t *testing.T, server *redistest.Server, cfg mutex.Config) *mutex.Locker {
	t.Helper()
	config.SetDefault(&cfg.RedisTimeout, 20*time.Second)
	locks, err := mutex.New(server.Client(t), cfg)
	expect.Must(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	return locks
}

func TestUpdateHoldsTheWriteLockOfEachKey(t *testing.T) {
	t.Parallel()
	f, lockServer := newWriteLocked(t, Config{}, mutex.Config{Prefix: "locks"})
	g := f.guards[0]
	mustGet(t, g, "a", returns("old"))
	var fences [2]int64
	for i := range fences {
		err := g.UpdateMany(t.Context(), []string{"b", "a"}, func(ctx context.Context) error {
			fence, ok := rwlock.FenceFrom(ctx)
			expect.Equal(t, "there is a fence", ok, true)
			fences[i] = fence
			for _, key := range []string{"a", "b"} {
				held := lockServer.Client(t).HGet(ctx, "locks:{"+g.cfg.Prefix+":"+key+"}:mutex", "token").Val()
				expect.Equal(t, "the lock of "+key+" is held", held != "", true)
			}
			return nil
		})
		expect.ErrorIs(t, err, nil)
	}
	expect.Equal(t, "fences grow", fences[1] > fences[0], true)
	expect.Equal(t, "after the update", mustGet(t, f.guards[1], "a", returns("new")), "new")
}

func TestAnUpdateWhoseWriteLockIsLostSaysSo(t *testing.T) {
	t.Parallel()
	f, lockServer := newWriteLocked(t, Config{}, mutex.Config{Prefix: "locks", TTL: 2 * time.Second})
	err := f.guards[0].Update(t.Context(), "k", func(ctx context.Context) error {
		lockServer.Pause()
		defer lockServer.Resume()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	expect.ErrorIs(t, err, rwlock.ErrLeaseLost, mutex.ErrLeaseLost)
	expect.Equal(t, "after the update", mustGet(t, f.guards[1], "k", returns("new")), "new")
}

// Whatever the write returns, and though neither the unlock nor the end of the update has an answer.
func TestAnUpdateWhoseLeaseIsLostSaysSoThoughRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second // longer than a busy machine stands still for
	for name, keys := range map[string][]string{"Update": {"k"}, "UpdateMany": {"a", "b"}, "under a WriteLock": {"l"}} {
		for returned, write := range map[string]func(context.Context) error{"nil": func(context.Context) error { return nil }, "the error": context.Context.Err} {
			expect.Beside(t, name+", returns "+returned, func(t *testing.T) {
				f, proxy := broken(t, shared, Config{LeaseTTL: lease, RedisTimeout: brisk})
				g, prefix := f.guards[0], f.guards[0].cfg.Prefix
				if name == "under a WriteLock" {
					locks, err := mutex.New(proxy.Client(t), mutex.Config{Prefix: prefix + "-locks", TTL: lease, RedisTimeout: brisk})
					expect.ErrorIs(t, err)
					t.Cleanup(func() { _ = locks.Close() }) // always nil
					g = newGuard(t, f.redis, Config{Prefix: prefix, WriteLock: locks, RedisTimeout: bearing})
				}
				err := g.UpdateMany(t.Context(), keys, func(ctx context.Context) error {
					proxy.BlackHole(true)
					<-ctx.Done()
					return write(ctx)
				})
				expect.ErrorIs(t, err, rwlock.ErrLeaseLost)
				expect.Equal(t, "Written", Written(err), true)
				proxy.BlackHole(false)
				proxy.Cut()
			})
		}
	}
}

func TestAnUpdateThatDoesNotGetTheWriteLockDoesNotWrite(t *testing.T) {
	t.Parallel()
	f, lockServer := newWriteLocked(t, Config{UpdateAnyway: true}, mutex.Config{Prefix: "locks", RedisTimeout: time.Second})
	wrote := errors.New("it was written")
	write := func(context.Context) error { return wrote }
	err := f.guards[0].Update(t.Context(), "k", func(ctx context.Context) error {
		waiting, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		err := f.guards[1].Update(waiting, "k", write)
		expect.ErrorIs(t, err, rwlock.ErrNotAcquired, context.DeadlineExceeded)
		expect.Equal(t, "it was written", errors.Is(err, wrote), false)
		return nil
	})
	expect.ErrorIs(t, err, nil)
	lockServer.Pause()
	defer lockServer.Resume()
	err = f.guards[0].Update(t.Context(), "k", write)
	if err == nil || errors.As(err, new(*RedisError)) || errors.Is(err, wrote) {
		t.Errorf("without the lock's server: %v", err)
	}
}

func TestUpdateAnywayWritesUnderTheWriteLock(t *testing.T) {
	t.Parallel()
	f, lockServer := newWriteLocked(t, Config{UpdateAnyway: true}, mutex.Config{Prefix: "locks"})
	cache := redistest.Start(t)
	g := newGuard(t, cache.Client(t), Config{RedisTimeout: brisk, WriteLock: f.guards[0].cfg.WriteLock, UpdateAnyway: true, Prefix: "shop"})
	cache.Pause()
	defer cache.Resume()
	written := false
	err := g.Update(t.Context(), "k", func(ctx context.Context) error {
		written = true
		held := lockServer.Client(t).HGet(ctx, "locks:{shop:k}:mutex", "token").Val()
		expect.Equal(t, "the lock is held", held != "", true)
		return nil
	})
	expect.Equal(t, "it was written", written, true)
	expectRedisError(t, err, "invalidate", "")
}

func TestCloseEndsWaitsForAWriteLock(t *testing.T) {
	t.Parallel()
	f, lockServer := newWriteLocked(t, Config{}, mutex.Config{Prefix: "locks"})
	g := newGuard(t, shared.Client(t), Config{
		Prefix: f.guards[0].cfg.Prefix, WriteLock: newLocks(t, lockServer, mutex.Config{Prefix: "locks"}), // of another process
	})
	result := make(chan error, 1)
	err := f.guards[0].Update(t.Context(), "k", func(context.Context) error {
		go func() { // owner: the test; ends with Close; joined by receiving
			result <- g.Update(context.Background(), "k", func(context.Context) error { return nil })
		}()
		redistest.Await(t, "it waits", func() bool {
			return lockServer.Commands()["zadd"] > 0
		})
		return errors.Join(g.Close(), <-result)
	})
	expect.ErrorIs(t, err, ErrClosed)
}

func TestAWriteEndsAfterUpdateTimeoutUnderAnyLock(t *testing.T) {
	t.Parallel()
	f, _ := newWriteLocked(t, Config{LeaseTTL: brisk, UpdateTimeout: brisk}, mutex.Config{})
	err := f.guards[0].Update(t.Context(), "k", func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	expect.ErrorIs(t, err, rwlock.ErrLeaseLost)
}
