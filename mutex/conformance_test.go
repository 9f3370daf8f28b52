package mutex

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestLocksKeepTheirPromises(t *testing.T) {
	t.Parallel()
	locktest.Run(t, conformance(1))
}

func TestLocksOfAQuorumKeepTheirPromises(t *testing.T) {
	t.Parallel()
	locktest.Run(t, conformance(3))
}

func TestAProcessOfTheSuite(t *testing.T) { locktest.Child(t, conformance(1)) }

// conformance is the kind of lock that a Locker hands out or, with more than one server, a Quorum.
func conformance(servers int) locktest.Kind {
	kind := locktest.Kind{
		Start:       func(tb testing.TB) locktest.Server { return startServers(tb, servers) },
		Shared:      func(tb testing.TB) locktest.Server { return serverOf(redistest.SharedServers(tb, servers)) },
		Light:       true,
		Volatile:    true,
		Open:        openLocks,
		Over:        func(relays []string) string { return strings.Join(relays, ",") },
		Clock:       clockOf,
		WallClock:   true,
		Clocked:     true,
		TTL:         2 * time.Second,
		NotAcquired: ErrNotAcquired, LeaseLost: ErrLeaseLost, Closed: ErrClosed,
	}
	if servers == 1 {
		kind.Asking = asking
	}
	return kind
}

// member is a server that can be started again.
type member struct{ *redistest.Server }

func (m member) Start() { m.Restart() }
func (m member) Lose()  { m.Restart() } // it has no disk

func startServers(tb testing.TB, n int) locktest.Server {
	var all []*redistest.Server
	for range n {
		all = append(all, redistest.Start(tb))
	}
	return serverOf(all)
}

func serverOf(all []*redistest.Server) (s locktest.Server) {
	for _, server := range all {
		s.Members = append(s.Members, member{server})
		s.Doors = append(s.Doors, server.Addr())
	}
	s.Addr = strings.Join(s.Doors, ",")
	return s
}

func openLocks(tb testing.TB, addr string, cfg locktest.Config) locktest.Locks {
	tb.Helper()
	var clients []Redis
	for a := range strings.SplitSeq(addr, ",") {
		rdb := redis.NewClient(&redis.Options{Addr: a})
		tb.Cleanup(func() { _ = rdb.Close() }) // it is of no use any more
		clients = append(clients, rdb)
	}
	c := Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, RedisTimeout: cfg.Timeout, Hooks: Hooks{OnLock: cfg.OnLock, OnUnlock: cfg.OnUnlock},
	}
	if len(clients) == 1 {
		k, err := New(clients[0], c)
		return ofTest(tb, k, err)
	}
	q, err := NewQuorum(clients, c)
	return ofTest(tb, q, err)
}

// ofTest is a Locker or a Quorum that closes when tb ends.
func ofTest(tb testing.TB, k locktest.Locker[*Lease], err error) locktest.Locks {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = k.Close() }) // always nil
	return locktest.Of(k)
}

func asking(tb testing.TB, addr, prefix, name string) int {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	k, err := New(rdb, Config{Prefix: prefix, RedisTimeout: redisTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	defer k.Close()
	info, err := k.Inspect(context.Background(), name)
	if err != nil {
		tb.Fatal(err)
	}
	if info.Token == "" {
		return info.Waiters
	}
	return 1 + info.Waiters
}

// clockOf is the clock of the first server.
func clockOf(tb testing.TB, addr string) time.Time {
	tb.Helper()
	first, _, _ := strings.Cut(addr, ",")
	rdb := redis.NewClient(&redis.Options{Addr: first})
	defer rdb.Close()
	now, err := rdb.Time(context.Background()).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return now
}
