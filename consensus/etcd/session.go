package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	answer, err := ask(c.Over, s.cfg.Timeout, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		sent = time.Now()
		return s.client.KeepAliveOnce(ctx, c.id)
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

// trusted reports whether etcd cannot have ended the session.
func (c *session) trusted(ttl time.Duration) bool {
	return c.Over.Err() == nil && time.Since(c.Sent()) < ttl
}
