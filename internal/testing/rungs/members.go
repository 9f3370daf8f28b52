package rungs

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/cacheguard/go/consensus/etcd"
	"github.com/cacheguard/go/consensus/zookeeper"
	"github.com/cacheguard/go/internal/testing/servers"
)

// members is how many there are: one may be lost.
const members = 3

func startEtcd(tb testing.TB) (addr string, started []Member) {
	var endpoints []string
	for _, m := range servers.StartEtcd(tb, members, func(endpoint string) bool {
		client, err := connectEtcd(endpoint)
		if err != nil {
			return false
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = client.Get(ctx, "x")
		return err == nil
	}) {
		endpoints, started = append(endpoints, m.Endpoint), append(started, m)
	}
	return strings.Join(endpoints, ","), started
}

func connectEtcd(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: strings.Split(addr, ","), Logger: zap.NewNop(), DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
	})
}

func onEtcd(addr, prefix string, ttl time.Duration) (Locks, error) {
	client, err := connectEtcd(addr)
	if err != nil {
		return nil, err
	}
	k, err := etcd.New(client, etcd.Config{Prefix: prefix, TTL: ttl})
	return adapt(k, err, client.Close)
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func startZooKeeper(tb testing.TB) (addr string, started []Member) {
	var addrs []string
	for _, m := range servers.StartZooKeeper(tb, members, "zookeeper.forceSync=yes") {
		addrs, started = append(addrs, m.Addr), append(started, m)
	}
	return strings.Join(addrs, ","), started
}

func onZooKeeper(addr, prefix string, ttl time.Duration) (Locks, error) {
	conn, _, err := zk.Connect(strings.Split(addr, ","), ttl,
		zk.WithDialer(zookeeper.Dialer(ttl)), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	k, err := zookeeper.New(conn, zookeeper.Config{Prefix: prefix, TTL: ttl})
	return adapt(k, err, func() error {
		conn.Close()
		return nil
	})
}

// Set starts rungs when they are first asked for. The zero value is ready to use.
type Set struct {
	mu  sync.Mutex
	all map[string]*attempt
}

type attempt struct {
	started *Started
	err     error
}

// Get is the started rung, or why it cannot be.
func (s *Set) Get(r Rung, redis string) (*Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[string]*attempt)
	}
	a := s.all[r.Name]
	if a == nil {
		a = new(attempt)
		a.started, a.err = r.Start(redis)
		s.all[r.Name] = a
	}
	return a.started, a.err
}

// End ends what was started.
func (s *Set) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if a.started != nil {
			a.started.End()
		}
	}
	s.all = nil
}
