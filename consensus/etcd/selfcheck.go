package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// ErrEndedToken is what SelfCheck returns for an etcd that refuses a client another token because its last one, which has ended, comes with
// the request.
var ErrEndedToken = errors.New("etcd gives no token to a client whose last one has ended, so after an outage that a token does not outlive the client works only " +
	"once a Locker had it forget the token: upgrade etcd, or use certificates instead of a Username")

// SelfCheck checks whether a client with that Config, which is the one that clientv3.New gets, can log in again when its token has ended: at once,
// without waiting for that. Call it when a service starts. The error is etcd's if it does not let the user in, and matches ErrEndedToken if it
// would not a second time; a Locker works all the same. Without a Username there are no tokens, and it returns nil and asks nothing. It makes
// one request, on a connection of its own, and asks until an etcd answers or ctx ends.
func SelfCheck(ctx context.Context, client clientv3.Config) error {
	if client.Username == "" {
		return nil
	}
	if err := logInAgain(ctx, client); err != nil && !errors.Is(err, rpctypes.ErrAuthNotEnabled) {
		return fmt.Errorf("etcd: self-check: %w", err)
	}
	return nil
}

// logInAgain asks for a token as a client does whose last one has ended, by one that does so for itself.
func logInAgain(ctx context.Context, cfg clientv3.Config) error {
	name, password := cfg.Username, cfg.Password
	cfg.Username, cfg.Password = "", ""
	if cfg.Logger == nil && cfg.LogConfig == nil {
		cfg.Logger = zap.NewNop() // it would print
	}
	cfg.DialOptions = append(cfg.DialOptions[:len(cfg.DialOptions):len(cfg.DialOptions)], grpc.WithChainUnaryInterceptor(sendEnded))
	client, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = clientv3.NewAuth(client).Authenticate(ctx, name, password)
	return err
}

// sendEnded adds a token that etcd does not know to a request. A refusal of it is not for the client, which would ask again.
func sendEnded(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, "ended.0")
	err := invoke(ctx, method, req, reply, cc, opts...)
	if errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
		return ErrEndedToken
	}
	return err
}
