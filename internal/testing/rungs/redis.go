package rungs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// timeout of requests: a machine that is busy is not a server that does not answer.
const timeout = 5 * time.Second

func onRedis(fair bool) func(addr, prefix string, ttl time.Duration) (Locks, error) {
	return func(addr, prefix string, ttl time.Duration) (Locks, error) {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		k, err := mutex.New(rdb, mutex.Config{Prefix: prefix, TTL: ttl, Fair: fair, RedisTimeout: timeout})
		return adapt(k, err, rdb.Close)
	}
}

// member is a Redis that is started again.
type member struct{ *redistest.Server }

func (m member) Start() { m.Restart() }

func startQuorum(tb testing.TB) (addr string, started []Member) {
	var addrs []string
	for range members {
		server := redistest.Start(tb)
		addrs, started = append(addrs, server.Addr()), append(started, member{server})
	}
	return strings.Join(addrs, ","), started
}

func onQuorum(addr, prefix string, ttl time.Duration) (Locks, error) {
	var clients []mutex.Redis
	var leave []func() error
	for a := range strings.SplitSeq(addr, ",") {
		rdb := redis.NewClient(&redis.Options{Addr: a})
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
