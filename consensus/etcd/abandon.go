package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// memory is how long a key that may still be on its way is refused.
const memory = 10 * time.Minute

// abandon takes back what was or may have been put into the queue. It tries until that is done or the session is over, as
// the key would hold up the others; after the end of the Locker, once, as the session ends then. The owner of the place joins the goroutine.
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
	ops, err := p.refusal(ctx)
	if err != nil {
		return err
	}
	ops = append(ops, clientv3.OpDelete(p.key))
	_, err = ask(ctx, p.locks, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return p.client.Txn(ctx).Then(ops...).Commit()
	})
	return err
}

// refusal is what has etcd refuse a request to put the key that may still arrive; nothing, if none may. Such a one has waited in a
// member that was frozen. It would put the key again after its deletion, and nobody would delete it as long as the session lives.
func (p *place) refusal(ctx context.Context) ([]clientv3.Op, error) {
	if !p.late {
		return nil, nil
	}
	if err := p.grant(ctx, p.memory, memory); err != nil {
		return nil, err
	}
	return []clientv3.Op{clientv3.OpPut(p.gone, "", clientv3.WithLease(p.memory))}, nil
}
