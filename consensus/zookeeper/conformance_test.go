package zookeeper

import (
	"crypto/rand"
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// examples is the server of the examples.
var examples = servers.Share(func(tb testing.TB) string { return start(tb, 1).Addr })

func TestMain(m *testing.M) { examples.Main(m) }

// ServersOfExamples returns the servers of a ZooKeeper, for the examples.
func ServersOfExamples() []string { return []string{examples.Addr()} }

// Each suite waits for leases most of the time, on servers of its own.
func TestLocksKeepTheirPromises(t *testing.T) {
	t.Parallel()
	locktest.Run(t, kind(1))
}

func TestLocksOutliveTheLossOfALeader(t *testing.T) {
	t.Parallel()
	locktest.RunMembers(t, kind(3))
}

func TestAProcessOfTheSuite(t *testing.T) { locktest.Child(t, kind(1)) }

func kind(members int) locktest.Kind {
	return locktest.Kind{
		Start: func(tb testing.TB) locktest.Server { return start(tb, members) },
		Open:  open, Asking: asking, Clock: clock, TTL: 4 * time.Second, OneConnection: true,
		Over:        func(relays []string) string { return strings.Join(relays, ",") },
		NotAcquired: ErrNotAcquired, LeaseLost: ErrLeaseLost, Closed: ErrClosed,
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func connect(tb testing.TB, addr string, timeout time.Duration) *zk.Conn {
	tb.Helper()
	conn, _, err := zk.Connect(strings.Split(addr, ","), timeout, zk.WithDialer(Dialer(timeout)),
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		tb.Fatal(err)
	}
	return conn
}

func start(tb testing.TB, n int) (s locktest.Server) {
	members := servers.StartZooKeeper(tb, n)
	for _, m := range members {
		s.Members = append(s.Members, m)
		s.Doors = append(s.Doors, m.Addr)
	}
	s.Addr = strings.Join(s.Doors, ",")
	s.Leader = func(tb testing.TB) int {
		for i, m := range members {
			if m.Mode() == "leader" {
				return i
			}
		}
		tb.Fatal("no member leads")
		return 0
	}
	return s
}

func open(tb testing.TB, addr string, cfg locktest.Config) locktest.Locks {
	tb.Helper()
	conn := connect(tb, addr, cfg.TTL)
	tb.Cleanup(conn.Close)
	k, err := New(conn, Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, Timeout: cfg.Timeout, Hooks: Hooks{OnLock: cfg.OnLock, OnUnlock: cfg.OnUnlock},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = k.Close() }) // always nil
	return locktest.Of(k)
}

// asking counts the nodes in the queue of a lock.
func asking(tb testing.TB, addr, prefix, name string) int {
	tb.Helper()
	conn := connect(tb, addr, 20*time.Second)
	defer conn.Close()
	all, _, err := conn.Children(path.Join(root, "lock-"+url.PathEscape(prefix+":"+name)))
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		tb.Fatal(err)
	}
	return len(all)
}

// clock is when a node was made, by the leader's clock.
func clock(tb testing.TB, addr string) time.Time {
	tb.Helper()
	conn := connect(tb, addr, 20*time.Second)
	defer conn.Close()
	node, err := conn.Create("/clock-"+rand.Text(), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if err != nil {
		tb.Fatal(err)
	}
	_, stat, err := conn.Get(node)
	if err != nil {
		tb.Fatal(err)
	}
	return time.UnixMilli(stat.Ctime)
}
