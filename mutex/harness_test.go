package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
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

// fleet is some instances of a service: lockers with clients of their own and a common prefix.
type fleet struct {
	*testing.T
	lockers []*Locker
	redis   client // to look around with
}

func newFleet(t *testing.T, n int, cfg Config) *fleet {
	t.Helper()
	instances := make([]client, n)
	for i := range instances {
		instances[i] = redistest.DeclaredKeys(t, shared.Client(t))
	}
	return newFleetOn(t, shared.Client(t), cfg, instances...)
}

// newFleetOn starts an instance on each of the clients.
func newFleetOn(t *testing.T, rdb client, cfg Config, instances ...client) *fleet {
	t.Helper()
	f := &fleet{T: t, redis: rdb}
	if cfg.Prefix == "" {
		cfg.Prefix = "test-" + rand.Text()
	}
	config.SetDefault(&cfg.RedisTimeout, redisTimeout)
	config.SetDefault(&cfg.TTL, redisTimeout)
	for _, instance := range instances {
		k, err := New(instance, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Close() }) // always nil
		f.lockers = append(f.lockers, k)
	}
	return f
}

// eachKind runs a test on locks of both kinds.
func eachKind(t *testing.T, test func(t *testing.T, cfg Config)) {
	t.Helper()
	for name, fair := range map[string]bool{"unfair": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, Config{Fair: fair})
		})
	}
}

// listening makes the fleet's inboxes subscribe, and waits for it.
func (f *fleet) listening() *fleet {
	f.Helper()
	for _, k := range f.lockers {
		k.start()
		redistest.Await(f, "an inbox is subscribed", func() bool { return k.base.Inbox.Address() != "" })
	}
	return f
}

func (f *fleet) key(name string) string { return lockKey(f.lockers[0].base.Config.Prefix, name) }

func (f *fleet) lock(i int, name string) *Lease {
	f.Helper()
	return must(f.T)(f.lockers[i].Lock(patient(f), name))
}

func must(t *testing.T) func(*Lease, error) *Lease {
	return func(l *Lease, err error) *Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// patient is a context whose end only a failing test sees.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (f *fleet) unlock(l *Lease) {
	f.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		f.Fatal(err)
	}
}

// waiter is a Lock under way.
type waiter = locktest.Waiter[*Lease]

// ask starts a Lock.
func (f *fleet) ask(ctx context.Context, i int, name string) *waiter {
	f.Helper()
	return locktest.Wait(f, ctx, f.lockers[i].Lock, name)
}

// awaitWaiters waits until that many wait in Redis.
func (f *fleet) awaitWaiters(name string, n int) {
	f.Helper()
	redistest.Await(f, "waiters in the queue", func() bool {
		info, err := f.lockers[0].Inspect(context.Background(), name)
		return err == nil && info.Waiters == n
	})
}

// awaitLine waits until that many wait in a locker's line.
func (f *fleet) awaitLine(i int, name string, n int) {
	f.Helper()
	redistest.Await(f, "waiters in the line", func() bool { return f.lockers[i].doors.Waiting(name) == n })
}

// awaitFree waits until nobody has the lock, and nothing but the memory of its fence is in Redis.
func (f *fleet) awaitFree(name string) {
	f.Helper()
	redistest.Await(f, "the lock is free", func() bool {
		info, err := f.lockers[0].Inspect(context.Background(), name)
		return err == nil && info.Token == "" && info.Waiters == 0
	})
	for _, field := range f.redis.HKeys(context.Background(), f.key(name)).Val() {
		if strings.HasPrefix(field, "waiter:") {
			f.Errorf("%s is left", field)
		}
	}
}

func cause(t *testing.T, l *Lease, want error) {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-patient(t).Done():
		t.Fatal("the context did not end")
	}
	if got := context.Cause(l.Context()); !errors.Is(got, want) {
		t.Errorf("the context ended with %v, want %v", got, want)
	}
}

// shared is the server of the tests that neither break it nor look at its counters.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// SharedAddr is the address of the shared server, for the examples.
func SharedAddr() string { return shared.Addr() }
