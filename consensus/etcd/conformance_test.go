package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/servers"
)

// examples is the server of the examples.
var examples = servers.Share(func(tb testing.TB) string { return start(tb, 1).Addr })

func TestMain(m *testing.M) { examples.Main(m) }

// EndpointsOfExamples returns the endpoints of an etcd, for the examples.
func EndpointsOfExamples() []string { return []string{examples.Addr()} }

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
		Open:  open, Asking: asking, Clock: clock, TTL: 3 * time.Second,
		Over:        func(relays []string) string { return "http://" + strings.Join(relays, ",http://") },
		NotAcquired: ErrNotAcquired, LeaseLost: ErrLeaseLost, Closed: ErrClosed,
	}
}

func connect(tb testing.TB, endpoints ...string) *clientv3.Client {
	tb.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, // as the package asks for: streams leave a frozen member
	})
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

func start(tb testing.TB, n int) (s locktest.Server) {
	members := servers.StartEtcd(tb, n, func(endpoint string) bool {
		client := connect(tb, endpoint)
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := client.Get(ctx, "x")
		return err == nil || errors.Is(err, rpctypes.ErrUserEmpty) // it wants to know who asks
	})
	var endpoints []string
	for _, m := range members {
		s.Members = append(s.Members, m)
		s.Doors = append(s.Doors, strings.TrimPrefix(m.Endpoint, "http://"))
		endpoints = append(endpoints, m.Endpoint)
	}
	s.Addr = strings.Join(endpoints, ",")
	s.Leader = func(tb testing.TB) int { return leader(tb, endpoints) }
	minor, patch := version(tb, endpoints[0])
	s.StaleLeaders = minor < 4 || minor == 4 && patch < 31 || minor == 5 && patch < 13
	s.LateWhenKilled, s.LateWhenFrozen = minor < 5, minor < 5
	return s
}

// version returns the version of a server, 3.minor.patch. The package comment says what depends on it.
func version(tb testing.TB, endpoint string) (minor, patch int) {
	tb.Helper()
	client := connect(tb, endpoint)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := fmt.Sscanf(status.Version, "3.%d.%d", &minor, &patch); err != nil {
		tb.Fatalf("%q: %v", status.Version, err)
	}
	return minor, patch
}

func leader(tb testing.TB, endpoints []string) int {
	tb.Helper()
	client := connect(tb, endpoints...)
	defer client.Close()
	for i, endpoint := range endpoints {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		status, err := client.Status(ctx, endpoint)
		cancel()
		if err == nil && status.Leader == status.Header.MemberId {
			return i
		}
	}
	tb.Fatal("no member leads")
	return 0
}

func open(tb testing.TB, addr string, cfg locktest.Config) locktest.Locks {
	tb.Helper()
	client := connect(tb, strings.Split(addr, ",")...)
	tb.Cleanup(func() { _ = client.Close() }) // it is of no use any more
	k, err := New(client, Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, Timeout: cfg.Timeout, Hooks: Hooks{OnLock: cfg.OnLock, OnUnlock: cfg.OnUnlock},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = k.Close() }) // always nil
	return locktest.Of(k)
}

// asking counts the keys in the queue of a lock.
func asking(tb testing.TB, addr, prefix, name string) int {
	tb.Helper()
	client := connect(tb, strings.Split(addr, ",")...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := client.Get(ctx, prefix+":"+name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		tb.Fatal(err)
	}
	return int(answer.Count)
}

// clock is what the first member writes over its answers.
func clock(tb testing.TB, addr string) time.Time {
	tb.Helper()
	first, _, _ := strings.Cut(addr, ",")
	client := http.Client{Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	question, err := http.NewRequestWithContext(context.Background(), http.MethodGet, first+"/version", nil)
	if err != nil {
		tb.Fatal(err)
	}
	answer, err := client.Do(question)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	now, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		tb.Fatal(err)
	}
	return now
}
