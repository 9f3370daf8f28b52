package rivals

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

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
