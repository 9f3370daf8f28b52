package rivals

import (
	"context"
	"errors"
	"time"

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
