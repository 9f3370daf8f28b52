package rungs

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// timeout of requests: a machine that is busy is not a server that does not answer.
const timeout = 5 * time.Second

func onRedis(addr string, fair bool) opener {
	return func(prefix string, ttl time.Duration) (Locks, error) {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		k, err := mutex.New(rdb, mutex.Config{Prefix: prefix, TTL: ttl, Fair: fair, RedisTimeout: timeout})
		return adapt(k, err, rdb.Close)
	}
}

func onQuorum(tb testing.TB, _ string) opener {
	var addrs []string
	for range 3 {
		addrs = append(addrs, redistest.Start(tb).Addr())
	}
	return func(prefix string, ttl time.Duration) (Locks, error) {
		var clients []mutex.Redis
		var leave []func() error
		for _, addr := range addrs {
			rdb := redis.NewClient(&redis.Options{Addr: addr})
			clients, leave = append(clients, rdb), append(leave, rdb.Close)
		}
		k, err := mutex.NewQuorum(clients, mutex.Config{Prefix: prefix, TTL: ttl, RedisTimeout: timeout})
		return adapt(k, err, func() (err error) {
			for _, f := range leave {
				err = errors.Join(err, f())
			}
			return err
		})
	}
}
