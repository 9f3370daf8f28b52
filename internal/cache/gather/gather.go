// Package gather lets the loads of several keys share one call of a loader, while each key keeps a fate of its own.
//
// A load that is on its way is a member of a Call: it joins, and later it either obtains a value from the Call or skips
// it. The Call begins when the first member obtains. It waits for the right to run, lets nobody join from then on,
// waits for the members that are still on their way, and runs. So a lone member waits for nobody. In a Call that others
// may join, they are waited for no longer than four times as long as the first member was on its way (but ten
// milliseconds at least): one whose Redis hangs does not hold up the others, and comes too late.
package gather

import (
	"context"
	"slices"
	"sync"
	"time"
)

// How long a Call that others may join waits for members on their way: in times of the first member's way, and at
// least.
const (
	longestWay   = 4
	shortestWait = 10 * time.Millisecond
)

// Member is a load that shares the Call.
type Member struct {
	Key string
	ID  any // what the loader knows the key by
}

// Config says how a Call runs.
type Config struct {
	Most int // how many may join; 0: as many as were given to New

	// Take waits for the right to run, and returns how to give it back. Not ok: the context has ended.
	Take func(ctx context.Context) (free func(), ok bool)

	// Run runs the loader, and calls finish with the result, also if the loader panics or ends its goroutine. It may
	// not panic itself. If it outlasts the context, the members do not wait for it.
	Run func(ctx context.Context, members []Member, finish func(map[string]any, error))

	// Limit bounds the time of Run.
	Limit func(ctx context.Context, members []Member) (context.Context, context.CancelFunc)

	// Go runs a task of the owner, who joins it.
	Go func(task func())
}

// Call is one call of a loader.
type Call struct {
	cfg     Config
	ctx     context.Context //nolint:containedctx // of the call: ends when nobody waits for it any more
	cancel  context.CancelFunc
	made    time.Time
	settled chan struct{} // closed when nobody is on the way, after the call has been sealed
	done    chan struct{} // closed when the result is set
	result  map[string]any
	err     error

	mu       sync.Mutex
	joined   map[string]struct{}
	open     map[string]struct{} // on their way
	obtained []Member
	waiting  int // members that wait for the result
	begun    bool
	sealed   bool // nobody may join
	started  bool // the loader runs: nobody may obtain
	finished bool
}

// New makes a Call for the keys, whose loads are on their way. The context has no end of its own.
func New(ctx context.Context, cfg Config, keys ...string) *Call {
	c := &Call{
		cfg: cfg, made: time.Now(), settled: make(chan struct{}), done: make(chan struct{}),
		joined: make(map[string]struct{}, len(keys)), open: make(map[string]struct{}, len(keys)), sealed: cfg.Most == 0,
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	for _, key := range keys {
		c.joined[key], c.open[key] = struct{}{}, struct{}{}
	}
	return c
}

// Join makes the load of the key a member, and reports whether it could.
func (c *Call) Join(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.joined[key]; twice || c.sealed || len(c.joined) >= c.cfg.Most {
		return false
	}
	c.joined[key], c.open[key] = struct{}{}, struct{}{}
	return true
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
	if _, open := c.open[key]; !open || c.started {
		return
	}
	delete(c.open, key)
	c.leftLocked()
}

// leftLocked notes that a member has left. If it was the last one, the Call ends, or never begins.
func (c *Call) leftLocked() {
	c.settleLocked()
	if len(c.open) > 0 || c.waiting > 0 {
		return
	}
	c.cancel()
	c.sealed = true
	if !c.begun && c.cfg.Most == 0 {
		c.begun = true
		c.cfg.Go(c.run) // to give back the right that it was made with
	}
}

func (c *Call) settleLocked() {
	if !c.sealed || len(c.open) > 0 {
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
	Keys  int // that the call was for
}

// Fate says why a member obtained nothing.
type Fate int

// The fates.
const (
	InTime  Fate = iota
	Skipped      // it had skipped
	Late         // the others have not waited for it any longer
)

// Obtain waits for the member's value. Result.Err says that ctx ended or that the call failed; the other fields then
// mean nothing.
func (c *Call) Obtain(ctx context.Context, m Member) (Result, Fate) {
	key := m.Key
	c.mu.Lock()
	_, open := c.open[key]
	switch {
	case !open:
		c.mu.Unlock()
		return Result{}, Skipped
	case c.started:
		delete(c.open, key)
		c.mu.Unlock()
		return Result{}, Late
	}
	delete(c.open, key)
	c.obtained = append(c.obtained, m)
	c.waiting++
	c.settleLocked()
	if !c.begun {
		c.begun = true
		c.cfg.Go(c.run)
	}
	c.mu.Unlock()
	defer c.leave(key)
	select {
	case <-c.done:
	case <-ctx.Done():
		return Result{Err: context.Cause(ctx)}, InTime
	}
	value, found := c.result[key]
	return Result{value, found, c.err, len(c.obtained)}, InTime
}

// leave is called by a member that does not wait any more.
func (c *Call) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if !c.started {
		c.obtained = slices.DeleteFunc(c.obtained, func(m Member) bool { return m.Key == key })
	}
	if c.started && c.waiting == 0 {
		c.cancel()
	} else if !c.started {
		c.leftLocked()
	}
}

// run is the Call from its beginning to its end.
func (c *Call) run() {
	patience := max(longestWay*time.Since(c.made), shortestWait)
	free, ok := c.cfg.Take(c.ctx)
	if !ok {
		c.start()
		c.finish(nil, context.Cause(c.ctx))
		return
	}
	defer free()
	c.awaitOthers(patience)
	members := c.start()
	if len(members) == 0 {
		c.cancel()
		c.finish(nil, context.Canceled)
		return
	}
	ctx, cancel := c.cfg.Limit(c.ctx, members)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.finish(nil, context.Cause(ctx)) })
	defer stop()
	c.cfg.Run(ctx, members, c.finish)
}

// awaitOthers seals the Call, and waits for those who are on their way; in one that others could join, no longer than
// given.
func (c *Call) awaitOthers(most time.Duration) {
	c.mu.Lock()
	c.sealed = true
	c.settleLocked()
	c.mu.Unlock()
	var over <-chan time.Time
	if c.cfg.Most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-c.settled:
	case <-over:
	case <-c.ctx.Done():
	}
}

// start returns those for whom the loader is to run.
func (c *Call) start() []Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed, c.started = true, true
	return c.obtained
}

func (c *Call) finish(result map[string]any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	c.finished, c.result, c.err = true, result, err
	close(c.done)
}
