package rivals

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// Lock is one instance of a service that locks with one of the libraries.
type Lock interface {
	// Lock waits for the lock, and returns how to unlock it, whether or not ctx has ended.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	// Close ends what the instance has started, its Redis client too.
	Close() error
}

// RWLock is a Lock that readers share.
type RWLock interface {
	Lock
	RLock(ctx context.Context, name string) (unlock func() error, err error)
}

// LockSetup is how an instance is to lock.
type LockSetup struct {
	Redis *redis.Options
	TTL   time.Duration
}

// LockLibrary makes instances.
type LockLibrary struct {
	Name string // with its version
	Ours bool
	Open func(LockSetup) (Lock, error)
}

// Locks are set up as their READMEs do it, but wait until they have the lock.
var Locks = []LockLibrary{mutexLock, fairLock, redislocker, redsyncer}

// RWLocks are the locks that readers share. No rival in Go has such a lock on Redis.
var RWLocks = []LockLibrary{rwLock}

func (s LockSetup) client() *redis.Client { return Setup{Redis: s.Redis}.client() }

var errNotHeld = errors.New("unlocked what was not held any more")

// redislocker is bsm/redislock 0.9.4. It asks again every 100 ms, as in its README.
var redislocker = LockLibrary{
	Name: "redislock 0.9.4",
	Open: func(s LockSetup) (Lock, error) {
		rdb := s.client()
		return redislockLock{rdb, redislock.New(rdb), s.TTL}, nil
	},
}

type redislockLock struct {
	*redis.Client
	locks *redislock.Client
	ttl   time.Duration
}

func (k redislockLock) Lock(ctx context.Context, name string) (func() error, error) {
	l, err := k.locks.Obtain(ctx, Prefix+"redislock:"+name, k.ttl, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		return nil, err
	}
	return func() error { return l.Release(context.WithoutCancel(ctx)) }, nil
}

// redsyncer is go-redsync 4.18.1 with its defaults on one server: it asks again every 50 to 250 ms. Its 32 tries are
// raised, since here everybody waits until it has the lock.
var redsyncer = LockLibrary{
	Name: "redsync 4.18.1",
	Open: func(s LockSetup) (Lock, error) {
		rdb := s.client()
		return redsyncLock{rdb, redsync.New(goredis.NewPool(rdb)), s.TTL}, nil
	},
}

type redsyncLock struct {
	*redis.Client
	locks *redsync.Redsync
	ttl   time.Duration
}

func (k redsyncLock) Lock(ctx context.Context, name string) (func() error, error) {
	m := k.locks.NewMutex(Prefix+"redsync:"+name, redsync.WithTries(1<<20), redsync.WithExpiry(k.ttl))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		ok, err := m.UnlockContext(context.WithoutCancel(ctx))
		if err == nil && !ok {
			err = errNotHeld
		}
		return err
	}, nil
}
