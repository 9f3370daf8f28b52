package rungs

import (
	"context"
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

func onEtcd(tb testing.TB, _ string) opener {
	connect := func(endpoints ...string) (*clientv3.Client, error) {
		return clientv3.New(clientv3.Config{
			Endpoints: endpoints, Logger: zap.NewNop(), DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		})
	}
	var endpoints []string
	for _, m := range servers.StartEtcd(tb, members, func(endpoint string) bool {
		client, err := connect(endpoint)
		if err != nil {
			return false
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = client.Get(ctx, "x")
		return err == nil
	}) {
		endpoints = append(endpoints, m.Endpoint)
	}
	return func(prefix string, ttl time.Duration) (Locks, error) {
		client, err := connect(endpoints...)
		if err != nil {
			return nil, err
		}
		k, err := etcd.New(client, etcd.Config{Prefix: prefix, TTL: ttl})
		return adapt(k, err, client.Close)
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func onZooKeeper(tb testing.TB, _ string) opener {
	var addrs []string
	for _, m := range servers.StartZooKeeper(tb, members, "zookeeper.forceSync=yes") {
		addrs = append(addrs, m.Addr)
	}
	return func(prefix string, ttl time.Duration) (Locks, error) {
		conn, _, err := zk.Connect(addrs, ttl, zk.WithDialer(zookeeper.Dialer(ttl)), zk.WithLogger(silent{}), zk.WithLogInfo(false))
		if err != nil {
			return nil, err
		}
		k, err := zookeeper.New(conn, zookeeper.Config{Prefix: prefix, TTL: ttl})
		return adapt(k, err, func() error {
			conn.Close()
			return nil
		})
	}
}
