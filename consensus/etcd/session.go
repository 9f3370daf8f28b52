package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/cacheguard/go/consensus/internal/holders"
)

var errSessionOver = errors.New("the lease of this process has ended, and with it its place in the queue")

// session is a lease in etcd that the process keeps alive. All its keys end with it.
type session struct {
	*holders.Session

	id      clientv3.LeaseID
	running sync.WaitGroup // its keeper

	// The keeper's: how it renews.
	stream etcdserverpb.Lease_LeaseKeepAliveClient // nil: there is none
	hangUp context.CancelFunc                      // ends the stream
}

// session returns the session of the store, and begins one if there is none that lives. Calls that come meanwhile wait for it.
func (s *locks) session(ctx context.Context) (*session, error) {
	select {
	case s.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.opening }()
	if s.current != nil && s.current.Over.Err() == nil {
		return s.current, nil
	}
	s.join()
	id, sent := newLease(), time.Now()
	if err := s.grant(ctx, id, s.cfg.TTL); err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	c := &session{Session: holders.Begin(sent), id: id}
	c.running.Go(func() { s.keep(c) }) // owner: the store; stop: End; joined by join
	s.current = c
	return c, nil
}

// join ends the current session's keeper. The session's keys were given up before, or end with it: a lease that has none
// costs etcd nothing, so it is left to expire.
func (s *locks) join() {
	if s.current != nil {
		s.current.End()
		s.current.running.Wait()
		s.current = nil
	}
}

// Close ends the session. No call is under way any more.
func (s *locks) Close() { s.join() }

// keep keeps the session alive until it is over.
func (s *locks) keep(c *session) {
	defer c.End()
	timer := time.NewTimer(s.cfg.TTL / 3)
	defer timer.Stop()
	for {
		select {
		case <-c.Over.Done():
			return
		case <-timer.C:
		}
		switch err := s.renew(c); {
		case err == nil:
			timer.Reset(s.cfg.TTL / 3)
		case errors.Is(err, rpctypes.ErrLeaseNotFound) || !c.trusted(s.cfg.TTL):
			return
		default:
			timer.Reset(s.cfg.TTL / 20)
		}
	}
}

func (s *locks) renew(c *session) error {
	var sent time.Time
	answer, err := ask(c.Over, s, func(ctx context.Context) (*etcdserverpb.LeaseKeepAliveResponse, error) {
		sent = time.Now()
		answer, err := c.beat(ctx, s.client)
		return answer, rpctypes.Error(err)
	})
	if err != nil {
		return err
	}
	if answer.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	c.Kept(sent)
	return nil
}

// beat sends a renewal, and returns the answer. All go by one stream: each time that it opens one, the client asks for another token, which
// costs etcd the check of a password. A stream that does not answer in time is given up, and the next may go to another member.
func (c *session) beat(ctx context.Context, client *clientv3.Client) (answer *etcdserverpb.LeaseKeepAliveResponse, err error) {
	life := context.Background()
	if c.stream == nil {
		life, c.hangUp = context.WithCancel(clientv3.WithRequireLeader(c.Over))
	}
	defer context.AfterFunc(ctx, c.hangUp)()
	if c.stream == nil {
		c.stream, err = clientv3.RetryLeaseClient(client).LeaseKeepAlive(life)
	}
	if err == nil {
		err = c.stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(c.id)})
	}
	if err == nil {
		answer, err = c.stream.Recv()
	}
	if err != nil {
		c.hangUp()
		c.stream = nil
	}
	return answer, err
}

// trusted reports whether etcd cannot have ended the session.
func (c *session) trusted(ttl time.Duration) bool {
	return c.Over.Err() == nil && time.Since(c.Sent()) < ttl
}
