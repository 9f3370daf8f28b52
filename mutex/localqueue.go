package mutex

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// maxPasses is how often in a row a process may hand a lock on among its own waiters while other processes wait.
const maxPasses = 8

// localQueues are the queues of a process's callers, one for each lock. The first of a queue has its turn: it asks Redis for
// the lock, waits there for it, and holds it. The others wait here until that is over, so that Redis has only one waiter per
// process.
type localQueues struct {
	roundTrip func(name string) time.Duration // to Redis and back, as far as is known

	mu     sync.Mutex
	byName map[string]*localQueue
}

// localQueue is there while a caller has its turn. That caller ends it by vacate or pass. A nil localQueue serves callers that
// do not queue here.
type localQueue struct {
	all     *localQueues
	name    string
	waiting []*place // guarded by the mutex of all, like the fields below
	passes  int      // how often the lock was handed over here since it was got from Redis
}

// place is a caller's place in a local queue.
type place struct {
	*claim
	patience time.Time // it leaves then at the latest; zero: never
	turns    chan turn // size 1, and one turn at most; sent under the mutex of localQueues
	gone     bool      // it does not wait any more; guarded by the same
}

// turn is what a caller that waits here gets. Without a grant it has to ask Redis.
type turn struct {
	granted bool
	queue.Grant
}

// enter begins a turn if there is no queue. Otherwise it takes a place in it.
func (qs *localQueues) enter(ctx context.Context, name string, c *claim) (*localQueue, *place) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		return qs.beginLocked(name), nil
	}
	p := &place{claim: c, turns: make(chan turn, 1)}
	p.patience, _ = ctx.Deadline()
	q.waiting = append(q.waiting, p)
	return q, p
}

// enterFirst begins a turn if there is no queue, and returns nil otherwise.
func (qs *localQueues) enterFirst(name string) *localQueue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.byName[name] != nil {
		return nil
	}
	return qs.beginLocked(name)
}

func (qs *localQueues) beginLocked(name string) *localQueue {
	if qs.byName == nil {
		qs.byName = make(map[string]*localQueue)
	}
	q := &localQueue{all: qs, name: name}
	qs.byName[name] = q
	return q
}

// wait waits for the caller's turn. If it returns an error, the turn is another caller's.
func (q *localQueue) wait(ctx, ending context.Context, p *place) (turn, error) {
	var err error
	select {
	case t := <-p.turns:
		return t, nil
	case <-ctx.Done():
		err = lifecycle.Ended(ctx)
	case <-ending.Done():
		err = context.Cause(ending)
	}
	if !q.leave(p) {
		return <-p.turns, nil // it was given meanwhile
	}
	return turn{}, err
}

// leave gives a place up, and reports whether that was before its turn.
func (q *localQueue) leave(p *place) bool {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if len(p.turns) > 0 {
		return false
	}
	p.gone = true
	q.waiting = slices.DeleteFunc(q.waiting, func(other *place) bool { return other == p })
	return true
}

// vacate ends a turn, and begins that of the next caller, which asks Redis.
func (q *localQueue) vacate() {
	if q == nil {
		return
	}
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	q.passes = 0
	if len(q.waiting) == 0 {
		delete(q.all.byName, q.name)
		return
	}
	next := q.firstLocked()
	if next == nil {
		next = q.waiting[0]
	}
	q.giveLocked(next, turn{})
}

// firstLocked returns the first place whose caller will still be waiting when a grant reaches it, or nil. Those before it will
// have left by then, and the lock would wait for them to give it back.
func (q *localQueue) firstLocked() *place {
	if len(q.waiting) == 0 {
		return nil
	}
	then := time.Now().Add(q.all.roundTrip(q.name))
	for _, p := range q.waiting {
		if p.patience.IsZero() || p.patience.After(then) {
			return p
		}
	}
	return nil
}

func (q *localQueue) giveLocked(p *place, t turn) {
	i := slices.Index(q.waiting, p)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	p.turns <- t // size 1, and empty: there is one turn for each place
}

// next returns the place that may be handed the lock, or nil, and whether it may go before other processes.
func (q *localQueue) next() (p *place, first bool) {
	if q == nil {
		return nil, false
	}
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return q.firstLocked(), q.passes < maxPasses
}

// pass ends a turn, and begins that of p with the lock in its hands. Not ok: p has left.
func (q *localQueue) pass(p *place, g queue.Grant) (ok bool) {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if p.gone {
		return false
	}
	q.passes++
	q.giveLocked(p, turn{true, g})
	return true
}

// left reports whether p does not wait any more, without having had its turn.
func (q *localQueue) left(p *place) bool {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return p.gone
}
