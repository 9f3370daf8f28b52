package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cacheguard/go/consensus/internal/holders"
)

var errSessionOver = errors.New("the session of this process has ended, and with it its place in the queue")

// session is valid while the connection keeps the session that it began with.
type session struct {
	*holders.Session

	id      int64
	running sync.WaitGroup // its keeper
}

// session returns the session of the connection, and begins to watch over it when it is a new one.
func (s *locks) session(ctx context.Context) (*session, error) {
	select {
	case s.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.opening }()
	if s.current != nil && s.current.Over.Err() == nil && s.current.id == s.conn.SessionID() {
		return s.current, nil
	}
	s.join()
	sent := time.Now()
	id, err := s.contact()
	if errors.Is(err, errSessionOver) { // the connection had none, or an older one
		sent = time.Now()
		id, err = s.contact()
	}
	if err != nil {
		return nil, fmt.Errorf("no session: %w", err)
	}
	c := &session{Session: holders.Begin(s.trust(sent)), id: id}
	c.running.Go(func() { s.keep(c) }) // owner: the store; stop: End; joined by join, when its request has ended
	s.current = c
	return c, nil
}

func (s *locks) join() {
	if s.current != nil {
		s.current.End()
		s.current.running.Wait()
		s.current = nil
	}
}

// Close ends the watch over the session. The connection is its owner's. No call is under way any more.
func (s *locks) Close() { s.join() }

// contact makes sure that the leader knows the session. A read would not do: a server that the leader has given up answers it.
func (s *locks) contact() (session int64, err error) {
	id := s.conn.SessionID()
	if _, err := s.conn.Sync("/"); err != nil {
		return 0, err
	}
	if id == 0 || s.conn.SessionID() != id {
		return 0, errSessionOver
	}
	return id, nil
}

// keep contacts the leader until the session is over.
func (s *locks) keep(c *session) {
	defer c.End()
	timer := time.NewTimer(s.cfg.TTL / contacts)
	defer timer.Stop()
	for {
		select {
		case <-c.Over.Done():
			return
		case <-timer.C:
		}
		s.renew(c)
		if s.conn.SessionID() != c.id {
			return
		}
		timer.Reset(s.cfg.TTL / contacts)
	}
}

// contacts is how many there are in a TTL.
const contacts = 6

// trust is what Claim.Sent is for a contact that was begun at sent. The leader may count the session's time from an earlier one: it
// hears of clients from the servers that they are connected to, which tell it of them every half tick. A session lasts two
// ticks or more, and there are contacts every sixth of it, so half of it is safe to trust.
func (s *locks) trust(sent time.Time) time.Time { return sent.Add(-s.cfg.TTL / 2) }

// renew contacts the leader.
func (s *locks) renew(c *session) {
	sent := time.Now()
	if id, err := s.contact(); err == nil && id == c.id {
		c.Kept(s.trust(sent))
	}
}
