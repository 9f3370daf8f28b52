package etcd

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAUserNeedsNoOtherKeysThanThoseThatBeginWithThePrefix(t *testing.T) {
	server := start(t, 1)
	root := connect(t, server.Addr)
	defer root.Close()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.UserAdd(ctx, "root", "secret"))
	must(root.UserGrantRole(ctx, "root", "root"))
	must(root.RoleAdd(ctx, "locks"))
	must(root.RoleGrantPermission(ctx, "locks", "lock", clientv3.GetPrefixRangeEnd("lock"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(root.UserAdd(ctx, "shop", "secret"))
	must(root.UserGrantRole(ctx, "shop", "locks"))
	must(root.AuthEnable(ctx))
	s := new(straggler)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(server.Addr, ","), Logger: zap.NewNop(), Username: "shop", Password: "secret",
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.intercept)},
	})
	must(client, err)
	defer client.Close()
	k, err := New(client, Config{TTL: 30 * time.Second, Timeout: 6 * time.Second})
	must(k, err)
	defer k.Close()
	for range 2 { // a request of the first one may come late, so that a key refuses it
		l, err := k.Lock(ctx, "x")
		must(l, err)
		expect.ErrorIs(t, l.Unlock(ctx), nil)
	}
	redistest.Await(t, "the key is deleted", func() bool {
		found, err := client.Get(ctx, "lock:x/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && found.Count == 0
	})
}
