package semaphore

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// client is a Redis client with the commands that tests look around with.
type client interface {
	Redis
	redis.Cmdable
}

// The RedisTimeout of tests that are about other things, and that and the TTL of those in which the time has to be up.
const (
	redisTimeout = redistest.Patience
	brisk        = redistest.Brisk
)

// fleet is some instances of a service: lockers with clients of their own, a common prefix, and two permits unless it says otherwise.
type fleet struct {
	t       *testing.T
	prefix  string
	lockers []*Locker
	redis   client // to look around with
}

func newFleet(t *testing.T, connect func(testing.TB) client, n int, cfg Config) *fleet {
	t.Helper()
	f := &fleet{t: t, prefix: "test-" + rand.Text(), redis: connect(t)}
	for range n {
		f.join(connect(t), cfg)
	}
	return f
}

func standalone(tb testing.TB) client { return shared.Client(tb) }

// everywhere runs a test on each kind of Redis.
func everywhere(t *testing.T, test func(t *testing.T, connect func(testing.TB) client)) {
	t.Helper()
	t.Parallel()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		test(t, standalone)
	})
	t.Run("declared keys", func(t *testing.T) {
		t.Parallel()
		test(t, func(tb testing.TB) client { return redistest.DeclaredKeys(tb, shared.Client(tb)) })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.SharedCluster(t)
		test(t, func(tb testing.TB) client { return c.Client(tb) })
	})
	t.Run("serverless", func(t *testing.T) {
		t.Parallel()
		s := redistest.SharedServerless(t)
		test(t, func(tb testing.TB) client { return s.Client(tb) })
	})
}

// join adds an instance on the client.
func (f *fleet) join(rdb Redis, cfg Config) *Locker {
	f.t.Helper()
	cfg.Prefix = f.prefix
	config.SetDefault(&cfg.RedisTimeout, redisTimeout)
	config.SetDefault(&cfg.TTL, redisTimeout)
	config.SetDefault(&cfg.Permits, 2)
	k, err := New(rdb, cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = k.Close() }) // always nil
	f.lockers = append(f.lockers, k)
	return k
}

// listening makes the fleet's inboxes subscribe, and waits for it.
func (f *fleet) listening() *fleet {
	f.t.Helper()
	for _, k := range f.lockers {
		k.base.Inbox.Start()
		redistest.Await(f.t, "an inbox is subscribed", func() bool { return k.base.Inbox.Address() != "" })
	}
	return f
}

// info inspects the semaphore of the tests.
func (f *fleet) info() Info {
	f.t.Helper()
	info, err := f.lockers[0].Inspect(context.Background(), "a")
	if err != nil {
		f.t.Fatal(err)
	}
	return info
}

func (f *fleet) awaitWaiters(n int) {
	f.t.Helper()
	redistest.Await(f.t, "the queue is as it should be", func() bool { return f.info().Waiters == n })
}

func (f *fleet) awaitHolders(n int) {
	f.t.Helper()
	redistest.Await(f.t, "the holders are as many as they should be", func() bool { return len(f.info().Holders) == n })
}

// take gets a permit.
func take(t *testing.T, k *Locker) *Lease {
	t.Helper()
	l, err := k.Lock(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t *testing.T, leases ...*Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// waiter is a call that waits for a permit.
type waiter = locktest.Waiter[*Lease]

func wait(t *testing.T, k *Locker) *waiter {
	t.Helper()
	return locktest.Wait(t, context.Background(), k.Lock, "a")
}

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }

func TestLeasesAndLockersAreLikeThoseOfAllLocks(t *testing.T) {
	t.Parallel()
	locktest.RunFace(t, locktest.Face[*Locker, *Lease]{
		Server: shared,
		Open: func(rdb *redis.Client, cfg config.Lock) (*Locker, error) {
			return New(rdb, Config{
				Prefix: cfg.Prefix, Instance: cfg.Instance, TTL: cfg.TTL, FixedLease: cfg.FixedLease, MaxHold: cfg.MaxHold,
				RedisTimeout: cfg.RedisTimeout, Hooks: Hooks(cfg.Hooks), Permits: 1,
			})
		},
		Lose: func(l *Lease, cause error) { l.held.Lose(cause) },
	})
}
