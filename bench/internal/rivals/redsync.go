package rivals

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

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
