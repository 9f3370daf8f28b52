package rungs

import (
	"context"
	"errors"
)

// Locks is one process that asks for locks.
type Locks interface {
	Lock(ctx context.Context, name string) (unlock func() error, err error)
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
	Close() error // ends its client, too
}

// locker is a Locker of the library.
type locker[L lease] interface {
	Lock(ctx context.Context, name string) (L, error)
	DoFenced(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) error
	Close() error
}

type lease interface {
	Unlock(ctx context.Context) error
}

// adapted is a Locker with its client.
type adapted[L lease] struct {
	locker[L]
	leave func() error
}

// adapt makes Locks of a Locker, which leave follows in Close, and at once if there is an error.
func adapt[L lease](k locker[L], err error, leave func() error) (Locks, error) {
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	return adapted[L]{k, leave}, nil
}

func (a adapted[L]) Lock(ctx context.Context, name string) (func() error, error) {
	l, err := a.locker.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func (a adapted[L]) Close() error { return errors.Join(a.locker.Close(), a.leave()) }
