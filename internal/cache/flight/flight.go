// Package flight lets concurrent callers share one run of a function, without sharing their fates: a run belongs to
// no caller. Each caller leaves when its own context ends, the first one included, and the run is cancelled when the
// last one has left. (golang.org/x/sync/singleflight ignores contexts, and callers cannot leave its runs.)
//
// A run may publish a first result before it ends. Callers that accept it leave; the run then finishes on its own.
package flight

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrClosed is the cause when Close cancels runs. Enter returns it afterwards.
var ErrClosed = errors.New("flight: group closed")

// ErrElse ends a wait whose caller has something else.
var ErrElse = errors.New("flight: something else happened")

// errAbandoned is the cause when a run is cancelled because its last caller has left.
var errAbandoned = errors.New("every caller has left")

// Group shares runs among callers with the same key. The zero value is ready to use.
type Group[K comparable, R any] struct {
	Lost func(K) R // the result of a run that has ended its goroutine; nil: the zero value

	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	calls  map[K]*call[R]
}

type call[R any] struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when result is set

	Waiters
	free bool // belongs to nobody; guarded by the group's mutex

	first  chan struct{} // closed when early is set
	early  R
	result R // written before done is closed
}

// Waiters are the callers of a run. They change under the group's mutex only.
type Waiters struct {
	callers atomic.Int64 // that wait
	entered atomic.Int64 // ever
	begun   atomic.Bool
}

// Run is what callers share. It may call publish once, with a result that is good for those who accept it.
type Run[R any] func(ctx context.Context, publish func(R)) R

// Ticket is a caller's share in a run.
type Ticket[K comparable, R any] struct {
	Joined bool // the run was under way already

	group *Group[K, R]
	key   K
	call  *call[R]
}

// Enter joins the run under way for the key, or starts one; the ticket's Wait returns its result, and each ticket must
// be waited for. The run gets the values of its first caller's context and a cancellation of its own. The error is
// ErrClosed; what the run has to say is its result. The run must not panic.
func (g *Group[K, R]) Enter(ctx context.Context, key K, run Run[R]) (t Ticket[K, R], err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return t, ErrClosed
	}
	c, joined := g.calls[key]
	if joined {
		c.callers.Add(1)
		c.entered.Add(1)
	} else {
		c = g.beginLocked(ctx, key, run, 1)
	}
	return Ticket[K, R]{Joined: joined, group: g, key: key, call: c}, nil
}

// Wait returns the published result if it is acceptable, else the run's result, or leaves when the context ends. When
// something else happens, which nil never does, it returns ErrElse, and Wait or Leave follows.
func (t Ticket[K, R]) Wait(ctx context.Context, otherwise <-chan struct{}, acceptable func(R) bool) (result R, err error) {
	first := t.call.first
	for {
		select {
		case <-first:
			if acceptable(t.call.early) {
				t.Leave()
				return t.call.early, nil
			}
			first = nil
		case <-t.call.done:
			return t.call.result, nil
		case <-otherwise:
			return result, ErrElse
		case <-ctx.Done():
			t.Leave()
			return result, ctx.Err()
		}
	}
}

// HasBegun reports whether the run has begun what it is for, as it says with Begin. It may have ended since.
func (t Ticket[K, R]) HasBegun() bool { return t.call.begun.Load() }

// Leave is for a caller that does not wait any more.
func (t Ticket[K, R]) Leave() { t.group.leave(t.key, t.call) }

// Keep has the run go on when all callers have left. Only Close cancels it then.
func (t Ticket[K, R]) Keep() {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	t.call.free = true
}

// Runs is how many runs are under way that can be joined.
type Runs struct {
	Running   int
	Published int // of them, have published their first results and go on
	Callers   int // wait for them
}

// Count counts the runs for the keys that match; nil: for all. It looks at all runs.
func (g *Group[K, R]) Count(match func(K) bool) (n Runs) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, c := range g.calls {
		if match != nil && !match(key) {
			continue
		}
		n.Running++
		n.Callers += int(c.callers.Load())
		if c.published() {
			n.Published++
		}
	}
	return n
}

// Ending returns what is closed at the end of the key's run if that has published its first result; else nil.
func (g *Group[K, R]) Ending(key K) <-chan struct{} {
	g.mu.Lock()
	c := g.calls[key]
	g.mu.Unlock()
	if c == nil {
		return nil
	}
	if c.published() {
		return c.done
	}
	return nil
}

func (c *call[R]) published() bool {
	select {
	case <-c.first:
		return true
	default:
		return false
	}
}

// WaitersOf returns the waiters of the run with this context; nil: it is not the context of a run.
func WaitersOf(ctx context.Context) *Waiters {
	w, _ := ctx.Value(waitersKey{}).(*Waiters)
	return w
}

// Callers is how many callers wait for the run; always one, if the Waiters are nil.
func (w *Waiters) Callers() int {
	if w == nil {
		return 1
	}
	return int(w.callers.Load())
}

// Entered is how many callers have entered the run so far, also callers that left; always one, if the Waiters are nil.
func (w *Waiters) Entered() int {
	if w == nil {
		return 1
	}
	return int(w.entered.Load())
}

// Begin is for the run, once it has waited for what it needs and before it does what it is for.
func (w *Waiters) Begin() {
	if w != nil {
		w.begun.Store(true)
	}
}

type waitersKey struct{}

// Start starts a run for the key that belongs to nobody, unless one is under way, and reports whether it did. Only
// Close cancels it.
func (g *Group[K, R]) Start(ctx context.Context, key K, run Run[R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.calls[key] != nil {
		return false
	}
	g.beginLocked(ctx, key, run, 0).free = true
	return true
}

// beginLocked begins a run, which may ask at once how many callers it has.
func (g *Group[K, R]) beginLocked(ctx context.Context, key K, run Run[R], callers int64) *call[R] {
	c := &call[R]{done: make(chan struct{}), first: make(chan struct{})}
	c.callers.Store(callers)
	c.entered.Store(callers)
	runCtx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), waitersKey{}, &c.Waiters))
	c.cancel = cancel
	if g.calls == nil {
		g.calls = make(map[K]*call[R])
	}
	g.calls[key] = c
	g.running.Go(func() { // owner: the Group; stop: cancel; joined by Close
		lost := true
		defer func() {
			if lost && g.Lost != nil {
				c.result = g.Lost(key)
			}
			g.forget(key, c)
			cancel(nil)
			close(c.done)
		}()
		c.result = run(runCtx, func(early R) { g.publish(c, early) })
		lost = false
	})
	return c
}

func (g *Group[K, R]) publish(c *call[R], early R) {
	g.mu.Lock()
	c.free = true
	g.mu.Unlock()
	c.early = early
	close(c.first)
}

// leave takes one caller off the call. The last one cancels it, unless it is free, and nobody can join it any more.
func (g *Group[K, R]) leave(key K, c *call[R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.callers.Add(-1) > 0 || c.free {
		return
	}
	if g.calls[key] == c {
		delete(g.calls, key)
	}
	c.cancel(errAbandoned) // before another run can begin, which may ask whether this one has been left
}

func (g *Group[K, R]) forget(key K, c *call[R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[key] == c {
		delete(g.calls, key)
	}
}

// Stop cancels all runs with ErrClosed, and refuses new ones. It does not wait.
func (g *Group[K, R]) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.calls {
		c.cancel(ErrClosed)
	}
}

// Close stops the group and waits for its runs. It may be called more than once.
func (g *Group[K, R]) Close() {
	g.Stop()
	g.running.Wait()
}

// Clock orders the beginnings of calls against the moments when answers are asked for. It is a logical
// clock: reading it costs one atomic load of a value that seldom changes, and it ticks only on the way to Redis or to
// a loader, never for a call.
type Clock struct {
	now atomic.Uint64
}

// Now is the moment when a call begins.
func (c *Clock) Now() uint64 { return c.now.Load() }

// Tick returns a moment that is later than every Now and Tick that returned before it: a call that began at t began
// before the tick exactly if t < Tick.
func (c *Clock) Tick() uint64 { return c.now.Add(1) }
