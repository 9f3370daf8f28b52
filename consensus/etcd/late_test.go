package etcd

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/cacheguard/go/internal/testing/expect"
)

// straggler keeps the first transaction of a client from etcd until it is let through, as a frozen member does.
type straggler struct {
	once sync.Once
	send func() error
}

func (s *straggler) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	first := false
	if strings.HasSuffix(method, "/Txn") {
		s.once.Do(func() { first = true })
	}
	if !first {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	s.send = func() error { return invoke(context.Background(), method, req, new(etcdserverpb.TxnResponse), cc) }
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// A request without an answer is sent to another member. By the time the first member goes on, the lock has been taken and given back, and
// the session is alive.
func TestARequestThatArrivesAfterTheUnlockLeavesNoKeyBehind(t *testing.T) {
	server := start(t, 1)
	for name, ask := range map[string]func(*Locker, context.Context) (*Lease, error){
		"Lock":    func(k *Locker, ctx context.Context) (*Lease, error) { return k.Lock(ctx, "x") },
		"TryLock": func(k *Locker, ctx context.Context) (*Lease, error) { return k.TryLock(ctx, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			s := new(straggler)
			client, err := clientv3.New(clientv3.Config{
				Endpoints: strings.Split(server.Addr, ","), Logger: zap.NewNop(),
				DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.intercept)},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			k, err := New(client, Config{Prefix: name, TTL: 30 * time.Second, Timeout: 6 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			for range 2 { // a request of the first one is late
				l, err := ask(k, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				expect.ErrorIs(t, l.Unlock(t.Context()), nil)
				if s.send != nil {
					expect.ErrorIs(t, s.send(), nil)
					s.send = nil
				}
				if n := asking(t, server.Addr, name, "x"); n != 0 {
					t.Fatalf("%d keys are left in the queue", n)
				}
			}
		})
	}
}
