package etcd

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// losses lose replies to grants of leases, and transactions that put a tombstone.
type losses struct{ grants, tombstones atomic.Int32 } // how many are left to lose

func (l *losses) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	lost := status.Error(codes.Unavailable, "lost")
	if txn, is := req.(*etcdserverpb.TxnRequest); is && strings.Contains(txn.String(), "lock:x!") && len(txn.Success) == 2 && l.tombstones.Add(-1) >= 0 {
		return lost
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if strings.HasSuffix(method, "/LeaseGrant") && l.grants.Add(-1) >= 0 {
		return lost
	}
	return err
}

func TestATombstoneAndASessionTakeOneLeaseHoweverOftenTheyAreRetried(t *testing.T) {
	server, l := start(t, 1), new(losses)
	s := new(straggler)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(server.Addr, ","), Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.intercept, l.intercept)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	k, err := New(client, Config{TTL: time.Minute, Timeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	l.grants.Store(1)
	lease, err := k.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	l.grants.Store(2)
	l.tombstones.Store(5)
	if err := lease.Unlock(t.Context()); err == nil {
		t.Error("no request was lost")
	}
	redistest.Await(t, "the key is deleted", func() bool { return asking(t, server.Addr, "lock", "x") == 0 })
	all, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "leases", len(all.Leases), 2)
	expect.ErrorIs(t, s.send(), nil)
	expect.Equal(t, "keys that came late", asking(t, server.Addr, "lock", "x"), 0)
}
