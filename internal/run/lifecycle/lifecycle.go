// Package lifecycle counts what is under way in something that can be closed, and joins it.
//
// There are two kinds. Calls may begin until somebody calls Close. Tasks, which may outlast the call that started them
// or clean up after it, may begin until Close returns. Everything is counted before it starts, under one mutex, so
// Close misses nothing, and latecomers are refused.
package lifecycle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Life is the life of something that can be closed. Use New.
type Life struct {
	Ending context.Context //nolint:containedctx // ended by Close

	end     context.CancelCauseFunc
	closing sync.Once

	mu     sync.Mutex
	change sync.Cond // a count has become 0
	closed bool      // no call begins
	over   bool      // no task does either
	calls  int
	tasks  int
}

// New begins a life.
func New() *Life {
	l := new(Life)
	l.change.L = &l.mu
	l.Ending, l.end = context.WithCancelCause(context.Background())
	return l
}

// Begin begins a call, and reports whether that may be done. Each true is followed by one Done.
func (l *Life) Begin() bool { return l.begin(&l.closed, &l.calls) }

// Done ends a call.
func (l *Life) Done() { l.finish(&l.calls) }

// Enter begins a task, and reports whether that may be done. Each true is followed by one Leave.
func (l *Life) Enter() bool { return l.begin(&l.over, &l.tasks) }

// Leave ends a task.
func (l *Life) Leave() { l.finish(&l.tasks) }

// Go runs f as a task. Only calls and tasks may start one like this: nothing is over while they run.
func (l *Life) Go(f func()) {
	l.mu.Lock()
	l.tasks++
	l.mu.Unlock()
	go func() { // owner: the Life's; stop: as its caller says; joined by Close
		defer l.Leave()
		f()
	}()
}

// Try runs f as a call, if one may begin, and reports whether it does.
func (l *Life) Try(f func()) bool {
	if !l.Begin() {
		return false
	}
	go func() { // owner: the Life's; stop: as its caller says; joined by Close
		defer l.Done()
		f()
	}()
	return true
}

// TryAtMost is Try, unless that many of these tasks run already.
func (l *Life) TryAtMost(most int64, running *atomic.Int64, f func()) bool {
	begun := running.Add(1) <= most && l.Try(func() {
		defer running.Add(-1)
		f()
	})
	if !begun {
		running.Add(-1)
	}
	return begun
}

// Quiet reports whether no task is under way.
func (l *Life) Quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks == 0
}

func (l *Life) begin(late *bool, count *int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *late {
		return false
	}
	*count++
	return true
}

func (l *Life) finish(count *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *count--; *count == 0 {
		l.change.Broadcast()
	}
}

// End ends Ending with the cause: no call begins any more. Close does it too, if there is nothing to do between the
// two.
func (l *Life) End(cause error) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(cause)
}

// Close ends Ending with the cause, joins the calls, has last, if not nil, give up what they have left, and joins the
// tasks. It may be called more than once, and returns when all that is done.
func (l *Life) Close(cause error, last func()) {
	l.closing.Do(func() {
		l.End(cause)
		l.mu.Lock()
		for l.calls > 0 {
			l.change.Wait()
		}
		l.mu.Unlock()
		if last != nil {
			last()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for l.tasks > 0 {
			l.change.Wait()
		}
		l.over = true
	})
}

// Alarm calls a function at the earliest of the times that it is set to. Its user's mutex guards it.
type Alarm struct {
	ring  func()
	timer *time.Timer
	at    time.Time // zero: it is not set
}

// NewAlarm returns an Alarm that is not set. The function calls Rung, and sets it to what is still to come.
func NewAlarm(ring func()) Alarm { return Alarm{ring: ring} }

// Set has it ring then, or earlier.
func (a *Alarm) Set(at time.Time) {
	switch {
	case !a.at.IsZero() && !at.Before(a.at):
		return // it is set anew when it rings
	case a.timer == nil:
		a.timer = time.AfterFunc(time.Until(at), a.ring)
	default:
		a.timer.Reset(time.Until(at))
	}
	a.at = at
}

// Rung says that it has rung.
func (a *Alarm) Rung() { a.at = time.Time{} }

// Stop ends it. A call of the function may be under way.
func (a *Alarm) Stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
