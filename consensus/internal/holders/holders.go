// Package holders tells those who hold locks by one session of the process about the session.
package holders

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
)

// Session is a session that all locks of a process depend on.
type Session struct {
	// Over ends when the session does.
	Over context.Context //nolint:containedctx // it is what waits end with

	end context.CancelFunc

	mu      sync.Mutex
	sent    time.Time // the request was sent that the store has answered last
	holders map[store.Holder]struct{}
}

// Begin begins a session with a request that was sent then.
func Begin(sent time.Time) *Session {
	s := &Session{sent: sent, holders: make(map[store.Holder]struct{})}
	s.Over, s.end = context.WithCancel(context.Background())
	return s
}

// Sent is when the request was sent that has renewed the session.
func (s *Session) Sent() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// Kept tells the holders that the session was renewed by a request that was sent then. They only note it.
func (s *Session) Kept(sent time.Time) {
	s.mu.Lock()
	if sent.After(s.sent) {
		s.sent = sent
	}
	holders := make([]store.Holder, 0, len(s.holders))
	for h := range s.holders {
		holders = append(holders, h)
	}
	s.mu.Unlock()
	for _, h := range holders {
		h.Kept(sent)
	}
}

// End ends the session: its holders have lost their locks, and waiters learn of it.
func (s *Session) End() {
	s.end()
	s.mu.Lock()
	holders := s.holders
	s.holders = nil
	s.mu.Unlock()
	for h := range holders {
		h.Lost()
	}
}

// Add adds a holder who hears of renewals from now on, and of the session's end.
func (s *Session) Add(h store.Holder) {
	s.mu.Lock()
	alive := s.holders != nil
	if alive {
		s.holders[h] = struct{}{}
	}
	sent := s.sent
	s.mu.Unlock()
	if alive {
		h.Kept(sent)
	} else {
		h.Lost()
	}
}

// Remove removes a holder.
func (s *Session) Remove(h store.Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holders, h)
}
