// Package database makes locks of what databases have: a lock that a session holds and others wait for in the database, and
// a table with a row for each name.
//
// The session's lock is the queue: the database wakes the next in it. It is not the lock, as the database frees it when the
// connection breaks, while the holder may still believe in it. That is what the row is for:
//
//	fence     the last fence
//	lease_ms  the TTL of the holder; 0 when the last holder has given the lock up
//	free_at   when a lock that was not given up is free, in the database's milliseconds; 0 until somebody asks
//
// The session that has the session's lock looks at the row, and takes the lock by raising the fence in the same statement, if lease_ms is
// 0. If not, the last holder's session has ended without an unlock: its process died, the connection broke, the database was restarted.
// Such a holder trusts its lease for TTL after its last request at most. So the first claim that finds the row like this sets free_at to
// TTL from now, and the lock is taken when that time has come. No clock of two machines is compared, and a holder that lives on has ended
// its context by then.
//
// The holder asks its connection for a sign of life every third of TTL. When there is none, the lease is lost at once.
package database

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Driver opens sessions.
type Driver interface {
	Open(ctx context.Context) (Session, error)
}

// Session is a connection of one lock's own. One goroutine at a time uses it. After an error, Discard is all that is done.
type Session interface {
	// Queue takes the session's lock of the name, or reports that somebody else has it when it must not wait. When giveUp
	// ends, so does the wait. It returns the error of giveUp if nothing is left behind and the session can be used again.
	Queue(giveUp context.Context, name string, wait bool) (taken bool, err error)

	// Claim raises the fence and notes the TTL in the row of the name, if the lock is free. If not, it returns how long
	// the last holder may still trust its lease, which is no more than its TTL. Once the session has waited for that long, the lock is
	// free.
	Claim(ctx context.Context, waited bool) (fence int64, left time.Duration, err error)

	// Idle returns nil when ctx ends, or an error as soon as it knows that the connection is broken.
	Idle(ctx context.Context) error

	// Ping asks the database for a sign of life.
	Ping(ctx context.Context) error

	// Leave gives the session's lock up, and notes in the row that the holder has done so if it was the holder.
	Leave(ctx context.Context, holder bool) error

	// Return gives a session without a lock back, for other uses.
	Return()

	// Discard closes the connection. The database frees the session's lock when it notices.
	Discard()
}

// Store is a database as a store of locks.
type Store struct {
	driver  Driver
	life    *lifecycle.Life
	ttl     time.Duration
	timeout time.Duration
	turns   turns
}

// New returns a store whose attempts are tasks of the life.
func New(driver Driver, life *lifecycle.Life, ttl, timeout time.Duration) *Store {
	return &Store{driver: driver, life: life, ttl: ttl, timeout: timeout}
}

// Close has nothing to do: everything belongs to an attempt or a claim.
func (s *Store) Close() {}

// Acquire waits for its turn in the process, then in the database. The attempt goes on in the background when ctx ends, to
// leave the database as it was.
func (s *Store) Acquire(ctx context.Context, name string, wait bool) (store.Claim, error) {
	if err := s.turns.take(ctx, name, wait); err != nil {
		return nil, err
	}
	a := &attempt{Store: s, name: name, wait: wait, giveUp: ctx, result: make(chan outcome)}
	s.life.Go(a.run) // owner: the Locker's life; stop: giveUp, then Timeout; joined by Close
	var err error
	select {
	case o := <-a.result:
		if o.claim != nil { // a nil *claim in an interface is not nil
			return o.claim, o.err
		}
		err = o.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if ctx.Err() != nil && a.behind.Load() {
		err = store.Taken(err)
	}
	return nil, err
}

// attempt is a call that has its turn.
type attempt struct {
	*Store

	name   string
	wait   bool
	behind atomic.Bool     // the database has said that somebody else has the lock
	giveUp context.Context //nolint:containedctx // of the caller, who may not wait for the end of the attempt
	result chan outcome    // received from until giveUp ends
}

type outcome struct {
	claim *claim
	err   error
}

// run delivers the claim, or gives it up if nobody waits for it any more.
func (a *attempt) run() {
	c, err := a.claim()
	if err != nil {
		a.turns.give(a.name)
	}
	select {
	case a.result <- outcome{c, err}:
		return
	case <-a.giveUp.Done():
	}
	if err == nil {
		_ = a.bounded(c.Release) // what fails is discarded
	}
}

// bounded makes a request that does not end with the caller's wait.
func (a *attempt) bounded(request func(context.Context) error) error {
	return store.Bounded(context.WithoutCancel(a.giveUp), a.timeout, request)
}

// claim opens a session, queues, and takes the lock.
func (a *attempt) claim() (*claim, error) {
	var session Session
	err := store.Bounded(a.giveUp, a.timeout, func(ctx context.Context) (err error) {
		session, err = a.driver.Open(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("no connection of the pool: %w", err)
	}
	taken, err := session.Queue(a.giveUp, a.name, false) // a wait in the database's queue says nothing until it ends
	if err == nil && !taken && a.wait {
		a.taken()
		if err = a.giveUp.Err(); err == nil {
			taken, err = session.Queue(a.giveUp, a.name, true)
		}
	}
	switch {
	case err != nil && !errors.Is(err, a.giveUp.Err()):
		session.Discard()
		return nil, err
	case err != nil:
		session.Return()
		return nil, err
	case !taken:
		session.Return()
		return nil, store.ErrTaken
	}
	return a.claimFree(session)
}

// taken notes that somebody else has the lock, for those who wait for their turn, too.
func (a *attempt) taken() {
	a.behind.Store(true)
	a.turns.tell(a.name)
}

// claimFree claims the lock once it is free: a last holder that has not given it up may trust its lease for a while longer.
func (a *attempt) claimFree(session Session) (*claim, error) {
	for waited := false; ; waited = true {
		var fence int64
		var left time.Duration
		sent := time.Now()
		err := a.bounded(func(ctx context.Context) (err error) {
			fence, left, err = session.Claim(ctx, waited)
			return err
		})
		switch {
		case err != nil:
			session.Discard()
			return nil, fmt.Errorf("change the row: %w", err)
		case left <= 0:
			a.turns.tell(a.name)
			return &claim{store: a.Store, name: a.name, session: session, fence: fence, token: rand.Text(), sent: sent}, nil
		case !a.wait:
			err = store.ErrTaken
		default:
			a.taken()
			err = a.pause(session, time.Now().Add(left))
		}
		if err != nil {
			a.leave(session)
			return nil, err
		}
	}
}

// pause waits by the clock of this process, as that of the database may be set. The session has the lock of the name until then, as it
// idles for no longer than the database lets it.
func (a *attempt) pause(session Session, until time.Time) error {
	for left := time.Until(until); left > 0; left = time.Until(until) {
		ctx, cancel := context.WithTimeout(a.giveUp, min(left, a.ttl/3))
		err := session.Idle(ctx)
		cancel()
		if err == nil {
			err = a.giveUp.Err()
		}
		if err == nil {
			err = a.bounded(session.Ping) // which makes a session that idles less idle
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) leave(session Session) {
	leave := func(ctx context.Context) error { return session.Leave(ctx, false) }
	if a.bounded(leave) != nil {
		session.Discard()
		return
	}
	session.Return()
}
