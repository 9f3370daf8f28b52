package histories

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

// ttl is how long leases last: long for a process that runs, short for one that is paused.
const ttl = 500 * time.Millisecond

// kinds are the locks with fences, and all are those under test.
var (
	kinds = []string{"mutex", "fair mutex", "rwlock"}
	all   = append([]string{"semaphore"}, kinds...)
)

// permits are how many may hold a semaphore.
const permits = 2

// locks is a kind of lock. With read, a caller asks to share it, which only some can.
type locks interface {
	lock(ctx context.Context, name string, read bool) (lease, error)
	Close() error
}

// lease is a Lease of either package.
type lease interface {
	Context() context.Context
	TrustedUntil() time.Time
	Fence() int64
	Unlock(ctx context.Context) error
}

type mutexes struct{ *mutex.Locker }

func (m mutexes) lock(ctx context.Context, name string, _ bool) (lease, error) {
	return m.Lock(ctx, name)
}

type rwlocks struct{ *rwlock.Locker }

func (rw rwlocks) lock(ctx context.Context, name string, read bool) (lease, error) {
	if read {
		return rw.RLock(ctx, name)
	}
	return rw.Lock(ctx, name)
}

// permitted are locks with several holders: each is a reader of the model. They have no fences.
type permitted struct{ *semaphore.Locker }

func (p permitted) lock(ctx context.Context, name string, _ bool) (lease, error) {
	l, err := p.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return unfenced{l}, nil
}

type unfenced struct{ *semaphore.Lease }

func (unfenced) Fence() int64 { return 0 }

// environment is what tells a child what to do.
func environment(kind, prefix string, more ...string) []string {
	return append(more, "ADDR="+shared.Addr(), "KIND="+kind, "PREFIX="+prefix)
}

// openLocks is what a child calls: the locks that its environment names, and a client.
func openLocks(t *testing.T) (locks, *redis.Client) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	t.Cleanup(func() { _ = rdb.Close() })
	prefix, kind := os.Getenv("PREFIX"), os.Getenv("KIND")
	var l locks
	switch kind {
	case "semaphore":
		k, err := semaphore.New(rdb, semaphore.Config{RedisTimeout: redistest.Patience, Prefix: prefix, TTL: ttl, Permits: permits})
		if err != nil {
			t.Fatal(err)
		}
		l = permitted{k}
	case "rwlock":
		k, err := rwlock.New(rdb, rwlock.Config{RedisTimeout: redistest.Patience, Prefix: prefix, TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		l = rwlocks{k}
	default:
		k, err := mutex.New(rdb, mutex.Config{RedisTimeout: redistest.Patience, Prefix: prefix, TTL: ttl, Fair: kind == "fair mutex"})
		if err != nil {
			t.Fatal(err)
		}
		l = mutexes{k}
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, rdb
}
