package etcd

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/cacheguard/go/consensus"
	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

type (
	// Config says how a Locker behaves.
	Config = consensus.Config

	// Locker hands out locks.
	Locker = consensus.Locker

	// Lease is a lock that is held.
	Lease = consensus.Lease

	// Hooks are called as things happen.
	Hooks = consensus.Hooks
)

// The errors of package mutex.
var (
	ErrNotAcquired = consensus.ErrNotAcquired
	ErrLeaseLost   = consensus.ErrLeaseLost
	ErrClosed      = consensus.ErrClosed
)

// New returns a Locker. It does no I/O and starts no goroutine. Config.TTL is rounded up to seconds, and etcd makes it at
// least one and a half election time-outs. The error names every field of cfg that is out of range.
func New(client *clientv3.Client, cfg Config) (*Locker, error) {
	return store.New[*Locker](client, cfg, func(cfg Config, life *lifecycle.Life) store.Store {
		return &locks{client: client, cfg: cfg, life: life, opening: make(chan struct{}, 1)}
	})
}

// grant makes sure that there is a lease of that id. The client could not say which, and each retry would leave one more behind.
func (s *locks) grant(ctx context.Context, id clientv3.LeaseID, ttl time.Duration) error {
	_, err := ask(ctx, s, func(ctx context.Context) (*etcdserverpb.LeaseGrantResponse, error) {
		seconds := int64((ttl + time.Second - 1) / time.Second)
		granted, err := clientv3.RetryLeaseClient(s.client).LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{ID: int64(id), TTL: seconds})
		if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrLeaseExist) {
			err = nil
		}
		return granted, err
	})
	return err
}

// newLease is the id of a lease that is to be granted.
func newLease() clientv3.LeaseID {
	var id [8]byte
	_, _ = rand.Read(id[:])                                        // it never fails
	return clientv3.LeaseID(binary.BigEndian.Uint64(id[:])>>1 | 1) // etcd's are positive
}

// attempts is how often a request is sent that is not answered: the client sends each to the next member, so one that is
// frozen, of three, does not fail a request.
const attempts = 3

// ask sends a request that may be sent again, and gives up after the time-out.
func ask[T any](ctx context.Context, s *locks, request func(context.Context) (T, error)) (answer T, err error) {
	err = store.Bounded(ctx, s.cfg.Timeout, func(ctx context.Context) (err error) {
		for range attempts {
			once, end := context.WithTimeout(ctx, s.cfg.Timeout/attempts)
			answer, err = request(once)
			if err != nil && once.Err() != nil {
				s.checkToken()
			}
			end()
			if err == nil || ctx.Err() != nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
				break
			}
		}
		return err
	})
	return answer, err
}
