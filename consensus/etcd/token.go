package etcd

import (
	"context"
	"math/rand/v2"
	"reflect"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// checkToken has the client forget its token, in the background, if etcd does not know that any more. A client by itself sends a token that
// has ended even when it asks for its successor. There are versions of etcd that refuse that, and then it asks again until its context
// ends: nothing but a request without an answer says so.
func (s *locks) checkToken() {
	if s.client.Username == "" || !s.life.Enter() {
		return
	}
	go func() { // owner: the Locker's life; stop: Timeout; joined by Close
		defer s.life.Leave()
		if !s.checking.CompareAndSwap(false, true) {
			return
		}
		defer s.checking.Store(false)
		ctx, end := context.WithTimeout(context.Background(), s.cfg.Timeout)
		defer end()
		forgetToken(ctx, end, s.client, s.cfg.Prefix)
	}()
}

// forgetToken makes a request with a twin of the client, which has the same token. When etcd refuses that, the twin asks for another one,
// and is told that etcd needs none: so it forgets the one that both have. The client itself is only looked at.
func forgetToken(ctx context.Context, end context.CancelFunc, client *clientv3.Client, prefix string) {
	endpoints := client.Endpoints()
	if len(endpoints) == 0 {
		return
	}
	of := reflect.ValueOf(client).Elem()
	copied := reflect.New(of.Type())
	copied.Elem().Set(of) // by an assignment, go vet would warn of the logger's atomic pointer
	twin := copied.Interface().(*clientv3.Client)
	twin.Auth = noAuth{client.Auth, end}
	conn, err := twin.Dial(endpoints[rand.IntN(len(endpoints))])
	if err != nil {
		return // the next one may succeed
	}
	defer conn.Close()
	_, _ = etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(prefix), Serializable: true, CountOnly: true}) // what there is does not matter
}

// noAuth says that etcd needs no token.
type noAuth struct {
	clientv3.Auth

	end context.CancelFunc // of the request that needs one
}

// Authenticate says so.
func (a noAuth) Authenticate(context.Context, string, string) (*clientv3.AuthenticateResponse, error) {
	a.end()
	return nil, rpctypes.ErrAuthNotEnabled
}
