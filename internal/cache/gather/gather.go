// Package gather lets the loads of several keys share one call of a loader, while each key keeps a fate of its own.
//
// A load that is on its way is a member of a Call: later it either obtains a value from the Call or skips it. The Call
// begins when the first member obtains. It waits for the members that are still on their way, and runs.
package gather

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Config says how a Call runs.
type Config struct {
	// Free gives back the right to run, with which the Call was made.
	Free func()

	// Run runs the loader, and calls finish with the result, also if the loader panics or ends its goroutine. It may
	// not panic itself. If it outlasts the context, the members do not wait for it.
	Run func(ctx context.Context, keys []string, finish func(map[string]any, error))

	// Limit bounds the time of Run.
	Limit func(ctx context.Context, keys []string) (context.Context, context.CancelFunc)

	// Go runs a task of the owner, who joins it.
	Go func(task func())
}

// Call is one call of a loader.
type Call struct {
	Returned chan struct{} // closed when the loader has returned, or will not run

	cfg     Config
	ctx     context.Context //nolint:containedctx // of the call: ends when nobody waits for it any more
	cancel  context.CancelFunc
	settled chan struct{} // closed when nobody is on the way
	turns   chan struct{} // has one for each member that may take the result now
	result  map[string]any
	err     error

	mu       sync.Mutex
	open     map[string]struct{} // on their way
	obtained map[string]struct{}
	waiting  int // members that wait for the result
	begun    bool
	started  bool // the loader runs: nobody may obtain
	finished bool
}

// atOnce is how many members get the result at the same time: thousands that are woken together would keep everybody
// else in the process waiting for a processor. It is some tenths of a millisecond of work.
const atOnce = 64

// New makes a Call for the keys, whose loads are on their way. The context has no end of its own.
func New(ctx context.Context, cfg Config, keys ...string) *Call {
	c := &Call{
		cfg: cfg, settled: make(chan struct{}), turns: make(chan struct{}, atOnce), Returned: make(chan struct{}),
		open: make(map[string]struct{}, len(keys)), obtained: make(map[string]struct{}, len(keys)),
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	for _, key := range keys {
		c.open[key] = struct{}{}
	}
	return c
}

// Covers reports whether the member is on its way.
func (c *Call) Covers(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.open[key]
	return open
}

// Skip says that the member does not want a value from the Call. It may be called more than once, and after Obtain.
func (c *Call) Skip(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[key]; open {
		delete(c.open, key)
		c.leftLocked()
	}
}

// leftLocked notes that a member has left. If it was the last one, the Call ends, or never begins.
func (c *Call) leftLocked() {
	c.settleLocked()
	if len(c.open) > 0 || c.waiting > 0 {
		return
	}
	c.cancel()
	if !c.begun {
		c.begun = true
		c.cfg.Go(c.run) // to give back the right that it was made with
	}
}

func (c *Call) settleLocked() {
	if len(c.open) > 0 {
		return
	}
	select {
	case <-c.settled:
	default:
		close(c.settled)
	}
}

// Result is what a member obtained.
type Result struct {
	Value any
	Found bool
	Err   error
	Runs  bool // the loader was called for the member, and may run on
}

// Obtain waits for the member's value, also when ctx has ended, as long as the loader runs for others. Result.Err says
// that ctx ended or that the call failed; the other fields then mean nothing. Not ok: it had skipped.
func (c *Call) Obtain(ctx context.Context, key string) (r Result, ok bool) {
	c.mu.Lock()
	if _, open := c.open[key]; !open {
		c.mu.Unlock()
		return Result{}, false
	}
	delete(c.open, key)
	c.obtained[key] = struct{}{}
	c.waiting++
	c.settleLocked()
	if !c.begun {
		c.begun = true
		c.cfg.Go(c.run)
	}
	c.mu.Unlock()
	runs := false
	select {
	case <-c.turns:
		runs = c.leave(key)
	case <-ctx.Done():
		if runs = c.leave(key); !runs {
			return Result{Err: context.Cause(ctx)}, true
		}
		<-c.turns // it is loaded for others, or all have left: given up now, others would load it at the same time
	}
	c.turns <- struct{}{} // there is room
	value, found := c.result[key]
	return Result{value, found, c.err, runs}, true
}

// leave is called by a member that does not wait any more. It reports whether the loader has been called.
func (c *Call) leave(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if !c.started {
		delete(c.obtained, key)
	}
	if c.started && c.waiting == 0 {
		c.cancel()
	} else if !c.started {
		c.leftLocked()
	}
	return c.started
}

// run is the Call from its beginning to its end.
func (c *Call) run() {
	defer close(c.Returned)
	defer c.cfg.Free()
	select {
	case <-c.settled:
	case <-c.ctx.Done():
	}
	keys := c.start()
	if len(keys) == 0 {
		c.cancel()
		c.finish(nil, context.Canceled)
		return
	}
	ctx, cancel := c.cfg.Limit(c.ctx, keys)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.finish(nil, context.Cause(ctx)) })
	defer stop()
	c.cfg.Run(ctx, keys, c.finish)
}

// start returns those for whom the loader is to run.
func (c *Call) start() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	return slices.Collect(maps.Keys(c.obtained))
}

func (c *Call) finish(result map[string]any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	c.finished, c.result, c.err = true, result, err
	for range atOnce {
		c.turns <- struct{}{}
	}
}
