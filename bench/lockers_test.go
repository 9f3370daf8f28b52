package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/cacheguard/go/mutex"
)

// locker locks as a user of a library would.
type locker interface {
	// lock waits for the lock, and returns how to unlock it.
	lock(ctx context.Context, name string) (unlock func() error, err error)
}

// lockLibraries are set up as their READMEs do it, but wait until they have the lock.
var lockLibraries = []struct {
	name string
	open func(b *testing.B) locker
}{
	{"mutex", openMutex},
	{"mutex, fair", openFairMutex},
	{"redislock 0.9.4", openRedislock},
	{"redsync 4.18.1", openRedsync},
}

const lockTTL = 10 * time.Second

type mutexLocker struct{ *mutex.Locker }

func openMutex(b *testing.B) locker     { return newMutex(b, mutex.Config{}) }
func openFairMutex(b *testing.B) locker { return newMutex(b, mutex.Config{Fair: true}) }

func newMutex(b *testing.B, cfg mutex.Config) locker {
	b.Helper()
	cfg.Prefix, cfg.TTL = "bench", lockTTL
	k, err := mutex.New(client(b), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = k.Close() })
	return mutexLocker{k}
}

func (k mutexLocker) lock(ctx context.Context, name string) (func() error, error) {
	l, err := k.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

type redislocker struct{ *redislock.Client }

func openRedislock(b *testing.B) locker { return redislocker{redislock.New(client(b))} }

func (k redislocker) lock(ctx context.Context, name string) (func() error, error) {
	l, err := k.Obtain(ctx, "redislock:"+name, lockTTL, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond), // that of its README
	})
	if err != nil {
		return nil, err
	}
	return func() error { return l.Release(ctx) }, nil
}

type redsyncer struct{ *redsync.Redsync }

func openRedsync(b *testing.B) locker { return redsyncer{redsync.New(goredis.NewPool(client(b)))} }

func (k redsyncer) lock(ctx context.Context, name string) (func() error, error) {
	m := k.NewMutex("redsync:"+name, redsync.WithTries(1<<20))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("not unlocked")
		}
		return err
	}, nil
}
