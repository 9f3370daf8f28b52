// Package queue waits for a lock that a queue in Redis hands out.
//
// # Protocol
//
// A waiter has an id of its own, under which it watches the process's inbox (package wake) before it asks. It asks with
// a script that takes the lock if it is free. Otherwise the script puts the id into the queue, or, if it is there
// already, notes that the waiter is alive. The script that frees the lock gives it to the first live waiter in the
// queue, and publishes the grant to its inbox, under its id.
//
//   - A grant may be lost on the way, or the waiter may have died: so it is short (Grace) until the waiter confirms it,
//     by asking again or by renewing the lease. Asking with an id that holds the lock confirms.
//   - A waiter asks again every third of Grace, its heartbeat, which also finds a grant whose message was lost. A waiter
//     that has not asked for as long as Grace counts as dead, and is skipped.
//   - The lock's holder may die: so a waiter also asks when the holder's lease ends.
//   - Without push, waiters poll. They stay in the queue.
//   - A waiter says for how long it can use a grant (Patience), and counts as dead after that: a grant that comes after it has
//     left costs the others a round trip.
//   - A waiter that gives up must tell Redis, because it may have been granted the lock. The caller does so after Wait
//     has returned an error.
//
// A grant by message is trusted as if it had been given when the waiter last asked: the message may have been on its
// way for any time, but the waiter was in the queue after that.
package queue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// LongestGrace bounds how long a dead waiter holds up those behind it. It stands in lua/prelude.lua too.
const LongestGrace = 3 * time.Second

// Grace is how long a waiter counts as alive after it asked, and how long a grant that is not confirmed lasts. ttl is
// the length of the lock's leases.
func Grace(ttl time.Duration) time.Duration { return min(ttl, LongestGrace) }

// Grant is a lock that was given to a waiter.
type Grant struct {
	Fence  int64
	Sent   time.Time     // no later than the lease began
	Length time.Duration // of the lease, from Sent
	Short  bool          // it came by message: Length is Grace, until the waiter confirms it
}

// Answer is what the script says to a waiter. Granted or not, it is alive.
type Answer struct {
	Granted bool
	Sent    time.Time     // before it was asked for
	Fence   int64         // granted: of the grant; otherwise as the lock likes, for Parse to know an older message by
	Length  time.Duration // granted: of the lease
	Clock   int64         // not granted: what the server's clock showed, in µs
	Left    time.Duration // not granted: until asking again may be worth it, as the holder's lease has ended
}

// Waiter waits for one lock.
type Waiter struct {
	Inbox    *wake.Inbox
	ID       string
	Grace    time.Duration
	Patience time.Duration // errors are borne for this long after the first answer; the first error is returned without one

	// Ended ends the wait too, but not a request under way.
	Ended context.Context //nolint:containedctx // the life of what the waiter belongs to

	Claim Claim

	// Keeper sends heartbeats, with those of the process's other waiters and its renewals, if there is one. Without a
	// Keeper the waiter asks instead.
	Keeper *lease.Keeper
	Heart  Heart
}

// Claim is what asks for a lock.
type Claim interface {
	// Ask runs the script. The inbox to register is empty while there is none.
	Ask(ctx context.Context, inbox string) (Answer, error)
	// Parse reads the body of a message. Not ok: ask instead, as when the message is older than the last answer, and so
	// may be of a grant that has ended.
	Parse(body string) (fence int64, ok bool)
}

// Heart makes heartbeats.
type Heart interface {
	// Beat is the call. While the waiter is queued as the last answer said, it returns in how many ms asking may be
	// worth it, and otherwise 0, which has it ask at once. It may be called once more after the wait.
	Beat() script.Call
}

// Wait returns when the lock is granted, when ctx ends, or when Redis could not be asked. Once Redis has said that
// others have the lock, the error at the end of ctx matches ErrNotAcquired, and its cause.
func (w *Waiter) Wait(ctx context.Context) (Grant, error) {
	watch := w.Inbox.Watch(w.ID)
	defer watch.Stop()
	w.Inbox.Start()
	var answered time.Time // before the last request that was answered was sent
	var beats *heartbeat
	defer func() { beats.stop() }()
	for polls := 0; ; polls++ {
		inbox := w.Inbox.Address()
		answer, err := w.Claim.Ask(ctx, inbox)
		switch {
		case ctx.Err() != nil && (err == nil || !answered.IsZero()) && !answer.Granted:
			return Grant{}, lifecycle.Taken(ctx)
		case err != nil && (ctx.Err() != nil || answered.IsZero() || time.Since(answered) > w.Patience):
			return Grant{}, err
		case err != nil:
			inbox, answer.Left = "", w.Grace // poll
		case answer.Granted:
			return Grant{Fence: answer.Fence, Sent: answer.Sent, Length: answer.Length}, nil
		default:
			answered = answer.Sent
			beats.stop()
			beats = w.begin(answered)
		}
		watch.Waiting()
		pause := answer.Left
		if beats == nil {
			pause = min(pause, w.interval())
		}
		fence, granted, err := w.next(ctx, watch, beats.asks(), wake.Patience(pause, inbox != "", polls))
		answered = beats.answered(answered)
		if err != nil {
			return Grant{}, err
		}
		if g := (Grant{fence, answered, w.Grace, true}); granted && g.trusted() {
			return g, nil
		}
	}
}

// next waits for a grant, or until it is time to ask again.
func (w *Waiter) next(
	ctx context.Context, watch *wake.Waiter, asks <-chan struct{}, pause time.Duration,
) (fence int64, granted bool, err error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case msg := <-watch.C:
		if !msg.AskAgain {
			fence, granted = w.Claim.Parse(msg.Body)
		}
	case <-timer.C:
	case <-asks:
	case <-ctx.Done():
		err = lifecycle.Taken(ctx) // it has had an answer
	case <-w.Ended.Done():
		err = context.Cause(w.Ended)
	}
	return fence, granted, err
}

// interval between heartbeats is a little less than a third of Grace, so that they spread.
func (w *Waiter) interval() time.Duration {
	third := w.Grace / 3
	return third - rand.N(third/4+1)
}

// trusted reports whether enough of the grant is left to begin with. Otherwise the waiter confirms it first.
func (g Grant) trusted() bool { return time.Since(g.Sent) < g.Length/2 }
