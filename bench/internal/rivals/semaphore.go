package rivals

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/semaphore"
)

// SemaphorePermits is how many hold one of Semaphores at once.
const SemaphorePermits = 8

// Semaphores are held by SemaphorePermits at once.
var Semaphores = []LockLibrary{
	{
		Name: "semaphore", Ours: true,
		Open: func(s LockSetup) (Lock, error) {
			rdb := s.client()
			k, err := semaphore.New(rdb, semaphore.Config{Prefix: Prefix + "semaphore", Permits: SemaphorePermits, TTL: s.TTL})
			if err != nil {
				return nil, errors.Join(err, rdb.Close())
			}
			return semaphoreLocker{k, rdb}, nil
		},
	},
	{
		Name: "ZSET by hand",
		Open: func(s LockSetup) (Lock, error) { return sortedSet{s.client(), s.TTL}, nil },
	},
}

type semaphoreLocker struct {
	*semaphore.Locker
	rdb io.Closer
}

func (k semaphoreLocker) Lock(ctx context.Context, name string) (func() error, error) {
	l, err := k.Locker.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func (k semaphoreLocker) Close() error { return errors.Join(k.Locker.Close(), k.rdb.Close()) }

// sortedSet is the counting semaphore of the textbooks: the first tokens of a set that is sorted by time hold it. The clients'
// clocks decide, nobody renews, and callers ask again every 100 ms, as redislock does.
type sortedSet struct {
	*redis.Client
	ttl time.Duration
}

func (k sortedSet) Lock(ctx context.Context, name string) (func() error, error) {
	key, token := Prefix+"zset:"+name, rand.Text()
	for {
		now := time.Now()
		var rank *redis.IntCmd
		_, err := k.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now.Add(-k.ttl).UnixMicro(), 10))
			p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: token})
			rank = p.ZRank(ctx, key, token)
			return nil
		})
		if err != nil {
			return nil, err
		}
		release := func() error { return k.ZRem(context.WithoutCancel(ctx), key, token).Err() }
		if rank.Val() < SemaphorePermits {
			return release, nil
		}
		if err := release(); err != nil {
			return nil, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
