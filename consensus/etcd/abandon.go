package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// memory is how long a key that may still be on its way is refused.
const memory = 10 * time.Minute

// abandon takes back what was or may have been put into the queue. It tries until that is done or the session is over, as
// the key would hold up the others; after the end of the Locker, once, as the session ends then. Its owner says who joins it.
func (p *place) abandon() {
	for attempts := 0; p.session.Over.Err() == nil; attempts++ {
		if p.takeBack() == nil || p.life.Ending.Err() != nil || !p.life.Pause(p.session.Over, attempts) && p.life.Ending.Err() == nil {
			return
		}
	}
}

// takeBack deletes the key. A request that has no answer may arrive after this one; a key of another name refuses it then.
func (p *place) takeBack() error {
	ctx := context.Background()
	ops := []clientv3.Op{clientv3.OpDelete(p.key)}
	if p.revision == 0 {
		lease, err := ask(ctx, p.cfg.Timeout, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
			return p.client.Grant(ctx, int64(memory/time.Second))
		})
		if err != nil {
			return err
		}
		ops = append(ops, clientv3.OpPut(p.gone, "", clientv3.WithLease(lease.ID)))
	}
	_, err := ask(ctx, p.cfg.Timeout, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return p.client.Txn(ctx).Then(ops...).Commit()
	})
	return err
}
