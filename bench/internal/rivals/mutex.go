package rivals

import (
	"context"
	"errors"
	"io"

	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
)

// Our own locks.
var (
	mutexLock = LockLibrary{
		Name: "mutex", Ours: true,
		Open: func(s LockSetup) (Lock, error) { return openMutex(s, false) },
	}
	fairLock = LockLibrary{
		Name: "mutex, fair", Ours: true,
		Open: func(s LockSetup) (Lock, error) { return openMutex(s, true) },
	}
	rwLock = LockLibrary{
		Name: "rwlock", Ours: true,
		Open: func(s LockSetup) (Lock, error) {
			rdb := s.client()
			k, err := rwlock.New(rdb, rwlock.Config{Prefix: Prefix + "rwlock", TTL: s.TTL})
			if err != nil {
				return nil, errors.Join(err, rdb.Close())
			}
			return rwLocker{k, rdb}, nil
		},
	}
)

type mutexLocker struct {
	*mutex.Locker
	rdb io.Closer
}

func openMutex(s LockSetup, fair bool) (Lock, error) {
	rdb := s.client()
	prefix := Prefix + "mutex"
	if fair {
		prefix = Prefix + "fair"
	}
	k, err := mutex.New(rdb, mutex.Config{Prefix: prefix, TTL: s.TTL, Fair: fair})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return mutexLocker{k, rdb}, nil
}

func (k mutexLocker) Lock(ctx context.Context, name string) (func() error, error) {
	l, err := k.Locker.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func (k mutexLocker) Close() error { return errors.Join(k.Locker.Close(), k.rdb.Close()) }

type rwLocker struct {
	*rwlock.Locker
	rdb io.Closer
}

func (k rwLocker) Lock(ctx context.Context, name string) (func() error, error) {
	return unlocking(ctx, name, k.Locker.Lock)
}

func (k rwLocker) RLock(ctx context.Context, name string) (func() error, error) {
	return unlocking(ctx, name, k.Locker.RLock)
}

func unlocking(
	ctx context.Context, name string, lock func(context.Context, string) (*rwlock.Lease, error),
) (func() error, error) {
	l, err := lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func (k rwLocker) Close() error { return errors.Join(k.Locker.Close(), k.rdb.Close()) }
