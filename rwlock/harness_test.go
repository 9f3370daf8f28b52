package rwlock

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// client is a Redis client with the commands that tests look around with.
type client interface {
	Redis
	redis.Cmdable
}

// arena is a kind of Redis to test on.
type arena func(tb testing.TB) client // a new client, as another process would have

func standalone(t *testing.T) arena {
	t.Helper()
	return func(tb testing.TB) client { return shared.Client(tb) }
}

func declaring(t *testing.T) arena {
	t.Helper()
	return func(tb testing.TB) client { return redistest.DeclaredKeys(tb, shared.Client(tb)) }
}

func cluster(t *testing.T) arena {
	t.Helper()
	c := redistest.SharedCluster(t)
	return func(tb testing.TB) client { return c.Client(tb) }
}

func serverless(t *testing.T) arena {
	t.Helper()
	s := redistest.SharedServerless(t)
	return func(tb testing.TB) client { return s.Client(tb) }
}

// everywhere runs a test on each kind of Redis.
func everywhere(t *testing.T, test func(t *testing.T, a arena)) {
	t.Helper()
	t.Parallel()
	for name, start := range map[string]func(*testing.T) arena{"standalone": standalone, "cluster": cluster, "serverless": serverless, "declared keys": declaring} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// The RedisTimeout of tests that are about other things, and that and the TTL of those in which the time has to be up.
const (
	redisTimeout = redistest.Patience
	brisk        = redistest.Brisk
)

// fleet is some instances of a service: lockers with clients of their own and a common prefix.
type fleet struct {
	t       *testing.T
	prefix  string
	lockers []*Locker
	redis   client // to look around with
}

func newFleet(t *testing.T, a arena, n int, cfg Config) *fleet {
	t.Helper()
	f := &fleet{t: t, prefix: "test-" + rand.Text(), redis: a(t)}
	for range n {
		f.join(a(t), cfg)
	}
	return f
}

// join adds an instance on the client.
func (f *fleet) join(rdb Redis, cfg Config) *Locker {
	f.t.Helper()
	cfg.Prefix = f.prefix
	config.SetDefault(&cfg.RedisTimeout, redisTimeout)
	config.SetDefault(&cfg.TTL, redisTimeout)
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
		k.locks.Inbox.Start()
		redistest.Await(f.t, "an inbox is subscribed", func() bool { return k.locks.Inbox.Address() != "" })
	}
	return f
}

// info inspects a lock.
func (f *fleet) info(name string) Info {
	f.t.Helper()
	info, err := f.lockers[0].Inspect(context.Background(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return info
}

// awaitWaiting waits until that many writers and readers are queued.
func (f *fleet) awaitWaiting(name string, writers, readers int) {
	f.t.Helper()
	redistest.Await(f.t, "the queue is as it should be", func() bool {
		info, err := f.lockers[0].Inspect(context.Background(), name)
		return err == nil && info.WaitingWriters == writers && info.WaitingReaders == readers
	})
}

// take is a method with which a Locker waits for a lock.
type take = func(k *Locker, ctx context.Context, name string) (*Lease, error)

// must takes a lock.
func must(t *testing.T, k *Locker, how take, name string) *Lease {
	t.Helper()
	l, err := how(k, context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Error(err)
	}
}

// letGo unlocks what is held for a brisk lease, which may be over on a busy machine.
func letGo(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil && !errors.Is(err, ErrLeaseLost) {
		t.Error(err)
	}
}

// waiter is a call that waits for a lock.
type waiter = locktest.Waiter[*Lease]

func wait(t *testing.T, k *Locker, how take, name string) *waiter {
	t.Helper()
	return locktest.Wait(t, context.Background(), func(ctx context.Context, name string) (*Lease, error) { return how(k, ctx, name) }, name)
}

// caller makes the calls of one who asks for a lock, or has it.
type caller struct {
	queue.Calls

	Token string
	As    any
}

func newCaller(k *Locker, name string, m rw.Mode) caller {
	return caller{callsAt(keys.Tagged(k.locks.Config.Prefix, name)), keys.NewToken(""), m.Arg()}
}

func callerOf(l *Lease) caller {
	c := rw.ClaimOf(l.held)
	return caller{c.Calls, l.Token(), c.As}
}

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }
