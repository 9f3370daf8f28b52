package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/cacheguard/go/consensus"
	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// locks is etcd as a store of locks.
type locks struct {
	client *clientv3.Client
	cfg    consensus.Config
	life   *lifecycle.Life

	opening chan struct{} // has an element while somebody looks at or changes current
	current *session

	checking atomic.Bool // whether etcd knows the client's token
}

// place is a key in the queue of a lock.
type place struct {
	*locks

	session  *session
	queue    string // what all keys of the lock begin with
	key      string
	gone     string           // the key whose existence refuses this one
	memory   clientv3.LeaseID // of that key
	revision int64            // of the key's creation; 0: not known
	late     bool             // a request to put the key may still arrive, as it was not answered
	behind   bool             // somebody else has the lock, or waits before it, as etcd has said
	holder   store.Holder
}

// newcomer is a place that is not in etcd yet. Names are escaped, so that no queue is part of another, and none has an exclamation mark.
func (s *locks) newcomer(c *session, name string) *place {
	escaped, id := url.PathEscape(name), rand.Text()
	queue := escaped + "/"
	return &place{locks: s, session: c, queue: queue, key: queue + id, gone: escaped + "!" + id, memory: newLease()}
}

// Acquire queues, and waits for the key before its own, and that one alone, to go.
func (s *locks) Acquire(ctx context.Context, name string, wait bool) (store.Claim, error) {
	c, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	p := s.newcomer(c, name)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.Over, cancel)()
	err = p.enter(asking, wait)
	if err == nil && wait {
		err = p.wait(asking)
	}
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, store.ErrTaken) && !p.late:
		return nil, err
	case p.behind && ctx.Err() != nil:
		err = store.Taken(err)
	}
	if errors.Is(err, rpctypes.ErrLeaseNotFound) || errors.Is(err, errSessionOver) {
		c.End()
	}
	s.life.Go(p.abandon) // owner: the Locker's life; stop: as abandon says; joined by Close
	if ctx.Err() == nil && c.Over.Err() != nil && !errors.Is(err, store.ErrTaken) {
		return nil, errSessionOver
	}
	return nil, err
}

// enter puts the key into the queue; if it must not wait, only into an empty one.
func (p *place) enter(ctx context.Context, wait bool) error {
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(p.gone), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(p.key), "=", 0),
	}
	if !wait {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(p.queue), "=", 0).WithPrefix())
	}
	put := clientv3.OpPut(p.key, "", clientv3.WithLease(p.session.id))
	attempts := 0
	answer, err := ask(ctx, p.locks, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		attempts++
		return p.client.Txn(ctx).If(conditions...).Then(put).Else(clientv3.OpGet(p.key)).Commit()
	})
	p.late = err != nil || attempts > 1
	if err != nil {
		return fmt.Errorf("put the key: %w", err)
	}
	if answer.Succeeded {
		p.revision = answer.Header.Revision
		return nil
	}
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs { // put by a request whose answer was lost
		p.revision = kv.CreateRevision
		return nil
	}
	return store.ErrTaken
}

// wait returns when no key is before its own.
func (p *place) wait(ctx context.Context) error {
	for {
		before, at, err := p.predecessor(ctx)
		if err != nil || before == "" {
			return err
		}
		p.behind = true
		if err := p.awaitDeletion(ctx, before, at); err != nil {
			return err
		}
	}
}

// predecessor returns the key before its own, if there is one, and the revision of that answer. It makes sure that its own is still there: a key that
// has gone has no predecessors either.
func (p *place) predecessor(ctx context.Context) (key string, at int64, err error) {
	before := append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(p.revision-1), clientv3.WithKeysOnly(), clientv3.WithPrefix())
	answer, err := ask(ctx, p.locks, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return p.client.Txn(ctx).If(p.there()).Then(clientv3.OpGet(p.queue, before...)).Commit()
	})
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("look for the key before it: %w", err)
	case !answer.Succeeded:
		return "", 0, errSessionOver
	}
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		return string(kv.Key), answer.Header.Revision, nil
	}
	return "", 0, nil
}

func (p *place) there() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.key), "=", p.revision)
}

// awaitDeletion returns when the key was deleted after the revision, or at the latest after TTL: a member that is frozen says
// nothing, nor that it does not.
func (p *place) awaitDeletion(waiting context.Context, key string, at int64) error {
	ctx, cancel := context.WithTimeout(waiting, p.cfg.TTL)
	defer cancel()
	for answer := range p.client.Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithRev(at+1), clientv3.WithFilterPut()) {
		if answer.CompactRevision > 0 {
			return nil // the revision is forgotten: look again
		}
		if err := answer.Err(); err != nil {
			return p.pause(waiting)
		}
		for _, event := range answer.Events {
			if event.Type == mvccpb.Event_DELETE {
				return nil
			}
		}
	}
	return waiting.Err()
}

// pause is before looking again when a watch has ended: the member it was at has lost its leader.
func (p *place) pause(ctx context.Context) error {
	timer := time.NewTimer(p.cfg.TTL / 20)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fence is the revision of the key's creation.
func (p *place) Fence() int64 { return p.revision }

// Token is the key.
func (p *place) Token() string { return p.key }

// Sent is when the session was last renewed.
func (p *place) Sent() time.Time { return p.session.Sent() }

// Keep is the session's.
func (p *place) Keep(h store.Holder) {
	p.holder = h
	p.session.Add(h)
}

// Release deletes the key. If it has gone by a request whose answer was lost, it was there until then.
func (p *place) Release(ctx context.Context) error {
	p.session.Remove(p.holder)
	attempts := 0
	refusal, err := p.refusal(ctx)
	var answer *clientv3.TxnResponse
	if err == nil {
		answer, err = ask(ctx, p.locks, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			attempts++
			return p.client.Txn(ctx).If(p.there()).Then(append(refusal, clientv3.OpDelete(p.key))...).Else(refusal...).Commit()
		})
	}
	switch {
	case err != nil:
		p.life.Go(p.abandon) // owner: the Locker's life; stop: as abandon says; joined by Close
		return fmt.Errorf("delete the key: %w", err)
	case !answer.Succeeded && (attempts == 1 || !p.session.trusted(p.cfg.TTL)):
		return store.ErrGone
	}
	return nil
}
