package mutex

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/queue"
)

// maxPasses is how often in a row a process may hand a lock on among its own waiters while other processes wait.
const maxPasses = 8

// lines are the queues of a process's callers, one for each lock. The first of a line has its tenure: it asks Redis for
// the lock, waits there for it, and holds it. The others wait here until that is over, so that Redis knows one waiter of
// each process.
type lines struct {
	roundTrip func(name string) time.Duration // to Redis and back, as far as is known

	mu     sync.Mutex
	byName map[string]*line
}

// line is there while a caller has the tenure. That caller ends it by vacate or pass. A nil line is that of callers that do not
// queue here.
type line struct {
	lines   *lines
	name    string
	waiting []*place // guarded by the mutex of lines, as what follows
	passes  int      // how often the lock was handed on here since it was got from Redis
}

// place is a caller's place in a line.
type place struct {
	who
	patience time.Time // it leaves then at the latest; zero: never
	call     chan call // size 1, and one call at most; sent under the mutex of lines
	gone     bool      // it does not wait any more; guarded likewise
}

// call tells who waits in a line that its tenure begins. Without a grant it has to ask Redis.
type call struct {
	granted bool
	queue.Grant
}

// enter begins a tenure if there is no line. Otherwise it takes a place in the line.
func (ls *lines) enter(ctx context.Context, name string, w who) (*line, *place) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byName[name]
	if l == nil {
		return ls.beginLocked(name), nil
	}
	p := &place{who: w, call: make(chan call, 1)}
	p.patience, _ = ctx.Deadline()
	l.waiting = append(l.waiting, p)
	return l, p
}

// enterFirst begins a tenure if there is no line, and returns nil otherwise.
func (ls *lines) enterFirst(name string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.byName[name] != nil {
		return nil
	}
	return ls.beginLocked(name)
}

func (ls *lines) beginLocked(name string) *line {
	if ls.byName == nil {
		ls.byName = make(map[string]*line)
	}
	l := &line{lines: ls, name: name}
	ls.byName[name] = l
	return l
}

// wait waits for the tenure. With an error it is another's.
func (l *line) wait(ctx, ending context.Context, p *place) (call, error) {
	var err error
	select {
	case c := <-p.call:
		return c, nil
	case <-ctx.Done():
		err = lifecycle.Ended(ctx)
	case <-ending.Done():
		err = context.Cause(ending)
	}
	if !l.leave(p) {
		return <-p.call, nil // it was called meanwhile
	}
	return call{}, err
}

// leave gives a place up, and reports whether that was before its call.
func (l *line) leave(p *place) bool {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	if len(p.call) > 0 {
		return false
	}
	p.gone = true
	l.waiting = slices.DeleteFunc(l.waiting, func(q *place) bool { return q == p })
	return true
}

// vacate ends the tenure, and begins that of the next, who asks Redis.
func (l *line) vacate() {
	if l == nil {
		return
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	l.passes = 0
	if len(l.waiting) == 0 {
		delete(l.lines.byName, l.name)
		return
	}
	next := l.firstLocked()
	if next == nil {
		next = l.waiting[0]
	}
	l.callLocked(next, call{})
}

// firstLocked is the first that will still wait when what it is given has reached it, or nil. Those before it will have left by
// then, and the lock would wait for them to give it back.
func (l *line) firstLocked() *place {
	if len(l.waiting) == 0 {
		return nil
	}
	then := time.Now().Add(l.lines.roundTrip(l.name))
	for _, p := range l.waiting {
		if p.patience.IsZero() || p.patience.After(then) {
			return p
		}
	}
	return nil
}

func (l *line) callLocked(p *place, c call) {
	i := slices.Index(l.waiting, p)
	l.waiting = slices.Delete(l.waiting, i, i+1)
	p.call <- c // size 1, and empty: it is called once
}

// next is who may be handed the lock, or nil, and whether it may go before other processes.
func (l *line) next() (p *place, first bool) {
	if l == nil {
		return nil, false
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return l.firstLocked(), l.passes < maxPasses
}

// pass ends the tenure, and begins that of p with the lock in its hands. Not ok: p has left.
func (l *line) pass(p *place, g queue.Grant) (ok bool) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	if p.gone {
		return false
	}
	l.passes++
	l.callLocked(p, call{true, g})
	return true
}

// left reports whether p does not wait any more, without having been called.
func (l *line) left(p *place) bool {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return p.gone
}
