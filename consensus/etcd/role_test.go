package etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/locktest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestAUserNeedsNoOtherKeysThanThoseThatBeginWithThePrefix(t *testing.T) {
	server, must, ctx := withRoles(t)
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

// withRoles is an etcd where the user shop may have locks.
func withRoles(t *testing.T) (server locktest.Server, must func(any, error), ctx context.Context) {
	t.Helper()
	t.Setenv("ETCD_BCRYPT_COST", "4") // a machine that is busy checks passwords for seconds otherwise
	server, ctx = start(t, 1), t.Context()
	root := connect(t, server.Addr)
	defer root.Close()
	must = func(_ any, err error) {
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
	return server, must, ctx
}

// asShop is a client of that user, and how often it has asked for a token.
func asShop(t *testing.T, server locktest.Server) (client *clientv3.Client, tokens *atomic.Int64) {
	t.Helper()
	tokens = new(atomic.Int64)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(server.Addr, ","), Logger: zap.NewNop(), Username: "shop", Password: "secret",
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			if strings.HasSuffix(method, "/Authenticate") {
				tokens.Add(1)
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // it is of no use any more
	return client, tokens
}

// A server that was started again knows no token that it has given before.
func TestALockerTakesLocksAgainWhenItsTokenHasEnded(t *testing.T) {
	t.Setenv("ETCD_AUTH_TOKEN_TTL", "4") // seconds
	server, must, ctx := withRoles(t)
	client, _ := asShop(t, server)
	k, err := New(client, Config{TTL: 30 * time.Second, Timeout: 9 * time.Second})
	must(k, err)
	defer k.Close()
	take := func(what string) {
		t.Helper()
		redistest.Await(t, what, func() bool {
			l, err := k.Lock(ctx, "x")
			if err != nil {
				t.Logf("%s: %v", what, err)
				return false
			}
			return l.Unlock(ctx) == nil
		})
	}
	take("a lock")
	server.Members[0].Pause()
	<-time.After(9 * time.Second) // a token lives for four
	server.Members[0].Resume()
	take("a lock after the server stood still")
	server.Members[0].Kill()
	server.Members[0].Start()
	take("a lock after the server was started again")
}

func TestRenewalsAskForNoTokens(t *testing.T) {
	server, must, ctx := withRoles(t)
	client, tokens := asShop(t, server)
	k, err := New(client, Config{TTL: 3 * time.Second})
	must(k, err)
	defer k.Close()
	l, err := k.Lock(ctx, "x")
	must(l, err)
	renewed := func(times int) {
		t.Helper()
		for range times {
			before := l.TrustedUntil()
			redistest.Await(t, "a renewal", func() bool { return l.TrustedUntil().After(before) || l.Context().Err() != nil })
		}
	}
	renewed(1) // opens the stream
	before := tokens.Load()
	renewed(3)
	expect.Equal(t, "tokens asked for in three renewals", tokens.Load()-before, 0)
	expect.ErrorIs(t, l.Unlock(ctx))
}

// TestSelfCheckFindsAnEtcdThatAClientCannotLogInToAgain holds it against what a client does whose token has ended.
func TestSelfCheckFindsAnEtcdThatAClientCannotLogInToAgain(t *testing.T) {
	server, must, ctx := withRoles(t)
	cfg := clientv3.Config{Endpoints: strings.Split(server.Addr, ","), Username: "shop", Password: "secret", Logger: zap.NewNop()}
	alone, err := clientv3.New(cfg)
	must(alone, err)
	defer alone.Close()
	root := cfg
	root.Username = "root"
	admin, err := clientv3.New(root)
	must(admin, err)
	defer admin.Close()
	must(admin.AuthDisable(ctx)) // no token outlives that
	anybody := connect(t, server.Addr)
	defer anybody.Close()
	must(anybody.AuthEnable(ctx))
	refused := errors.Is(SelfCheck(ctx, cfg), ErrEndedToken)
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	if refused { // then it asks again until its time is over
		time.AfterFunc(3*time.Second, cancel)
	}
	_, err = alone.Get(asked, "lock")
	expect.Equal(t, "the client works", err == nil, !refused)
	wrong := cfg
	wrong.Password = "wrong"
	expect.ErrorIs(t, SelfCheck(ctx, wrong), rpctypes.ErrAuthFailed)
	nobody := cfg
	nobody.Username, nobody.Password = "", ""
	expect.ErrorIs(t, SelfCheck(ctx, nobody))
	expect.Equal(t, "any user is told the same", errors.Is(SelfCheck(ctx, root), ErrEndedToken), refused)
}

func TestSelfCheckPassesAnEtcdWithoutRoles(t *testing.T) {
	server := start(t, 1)
	expect.ErrorIs(t, SelfCheck(t.Context(), clientv3.Config{Endpoints: strings.Split(server.Addr, ","), Username: "shop", Password: "secret"}))
}
