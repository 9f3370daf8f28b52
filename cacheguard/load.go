package cacheguard

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/failure"
	"github.com/cacheguard/go/internal/cache/guess"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/watch"
)

// loaders runs the loaders of a Guard, within its limits and each under LoadTimeout. None can take the process down.
type loaders struct {
	cfg       *Config
	limits    *limit.Loads
	running   atomic.Int64
	cost      guess.Cost // of all of them
	failures  failure.Memory
	meanwhile guess.Misses // of loads that waited for a slot: what was stored in that time
	journal   *watch.Journal
	observers *observers
	kinds     *kinds
	tasks     *lifecycle.Life // the Guard's

	mu   sync.Mutex
	runs map[*loading]struct{} // loads whose loader runs
	keys map[loadedKey]*loading
}

// loaded is what a loader returned.
type loaded struct {
	value  any // *V
	err    error
	absent bool   // err is ErrNotFound
	text   string // of err
	took   time.Duration
	ttl    time.Duration // as set by SetTTL, or unset
	tags   []string      // as set by SetTags, and those of the value
	again  bool          // it is the value of load.made
	origin string        // of the load

	what    protocol.Kind // of the payload, as it is stored
	payload []byte
	refused error // why it cannot be stored
	untold  bool  // nor handed to those who wait elsewhere
}

// need says what limits hold for a load. One that a loader asked for shares that loader's slot: if it needed one of its
// own, loaders that hold all the slots could wait for each other. The keys of a GetMany share one slot.
func (l *loaders) need(j *load) limit.Need {
	return limit.Need{
		Borrows: j.scope.nested || j.unlimited || j.isGathered(), Spare: j.spare, Until: j.ends,
		Kind: j.policy.kind.loadSlots,
	}
}

// takeSlot waits for a slot. The context belongs to the flight that wants to load, or to the caller of a GetMany.
func (l *loaders) takeSlot(ctx context.Context, j *load) (limit.Slot, error) {
	if err := l.awaitLeft(ctx, j); err != nil {
		return limit.Slot{}, err
	}
	s, ok := l.limits.Take(ctx, l.need(j))
	if !ok {
		return s, l.gaveUp(ctx)
	}
	return s, nil
}

// takePermit waits for a slot and for what Config.Limiter gives: where that wait must not count for LoadTimeout.
func (l *loaders) takePermit(ctx context.Context, n limit.Need) (limit.Slot, error) {
	s, ok := l.limits.Take(ctx, n)
	if !ok || !l.limits.Permit(ctx, &s) {
		return limit.Slot{}, l.gaveUp(ctx)
	}
	return s, nil
}

// gaveUp is why a load got no slot.
func (l *loaders) gaveUp(ctx context.Context) error {
	for _, ended := range []context.Context{ctx, l.tasks.Ending} {
		if cause := context.Cause(ended); cause != nil {
			return closedOr(cause)
		}
	}
	return errNoSpareSlot
}

// isOwn reports whether a load failed because of this Guard alone: it is closed, or its Limiter is. Others may load.
func (l *loaders) isOwn(err error) bool {
	return errors.Is(err, errNoSpareSlot) || errors.Is(err, ErrClosed) && l.tasks.Ending.Err() != nil
}

// run runs the loader under LoadTimeout, once Config.Limiter lets it, and frees its slot when the loader returns. When
// the context ends first, run leaves the loader to itself, so that nobody waits for a loader that ignores its context.
func (l *loaders) run(ctx context.Context, j *load, s limit.Slot) loaded {
	load := newLoading(ctx, l, j.policy.kind, j.key)
	l.keep(ctx, load)
	if ctx.Err() != nil { // nobody waits any more: asked once others can see the load
		l.limits.Free(s)
	}
	if ctx.Err() != nil || !l.limits.Permit(ctx, &s) {
		l.drop(load)
		return loaded{err: unanswered(ctx, j.key, l.gaveUp(ctx))}
	}
	ctx = context.WithValue(ctx, loadingKey{}, load)
	var out loaded
	if j.isGathered() {
		out = l.gathered(ctx, j, load, s)
	} else {
		out = l.alone(ctx, j, load, s)
	}
	if out.err != nil && errors.As(out.err, new(*loadTimeout)) {
		load.told.Store(true)
		l.tellEnd(ctx, j, load, l.cfg.LoadTimeout, out.err) // now, as its loader may never return
	}
	out.origin = l.cfg.Hooks.origin(ctx)
	return out
}

// alone runs a loader on a goroutine of its own.
func (l *loaders) alone(ctx context.Context, j *load, load *loading, s limit.Slot) loaded {
	ctx, cancel := l.withTimeout(ctx, j.key)
	done := make(chan loaded, 1)
	l.tasks.Go(func() { // owner: the Guard; stop: ctx; joined by Close
		defer cancel()
		defer l.limits.Free(s)
		l.runProtected(ctx, load.begin(ctx), j, load, func(out loaded) { done <- out })
	})
	return l.await(ctx, j, done)
}

// gathered waits for what the loader of a batch returns for the key. What else there is of the user's code, a Codec and
// Tags, runs here, too, and may end this goroutine.
func (l *loaders) gathered(ctx context.Context, j *load, load *loading, s limit.Slot) (out loaded) {
	defer l.limits.Free(s)
	defer func() {
		if load.until == nil {
			return // it is dropped
		}
		select {
		case <-load.until:
			l.drop(load)
		default:
			l.tasks.Go(func() { // owner: the Guard; stop: the batch's loader; joined by Close
				<-load.until
				l.drop(load)
			})
		}
	}()
	l.runProtected(ctx, ctx, j, load, func(o loaded) { out = o })
	return out
}

// await waits for what the loader returns, or the end of the context.
func (l *loaders) await(ctx context.Context, j *load, done <-chan loaded) loaded {
	defer l.tellIfSlow(j.key)()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
	}
	select {
	case out := <-done:
		return out
	default:
		cause := context.Cause(ctx)
		outlives(l, j.key, cause, done)
		return loaded{err: cause, text: l.tells(j, cause)}
	}
}

// tells is the text of LoadTimeout for other instances; none for another end. What the program makes of it may panic or
// end its goroutine.
func (l *loaders) tells(j *load, cause error) (text string) {
	if !errors.As(cause, new(*loadTimeout)) {
		return ""
	}
	told := make(chan string)
	go func() { // owner: tells, which waits for it
		text := ownNames.Encode(cause, cause.Error())
		defer func() {
			_ = recover()
			told <- text
		}()
		text = j.policy.names.Encode(cause, l.cfg.textOf(cause))
	}()
	return <-told
}

// tellIfSlow reports a load that takes longer than SlowLoad while it still runs, because one that hangs is not reported
// by its end.
func (l *loaders) tellIfSlow(key string) (stop func() bool) {
	if !l.tellsSlow() {
		return func() bool { return true }
	}
	return time.AfterFunc(l.cfg.SlowLoad, func() { // stop: at once; joined by Close
		l.tasks.Try(func() { l.tell(context.Background(), EventStillRuns, key, nil, "after", l.cfg.SlowLoad) })
	}).Stop
}

// tellsSlow reports whether loads are timed: a test's clock does not move during one.
func (l *loaders) tellsSlow() bool { return l.cfg.SlowLoad > 0 && !l.cfg.clock.Manual() }

// outlived is how long a loader may take to return when its context has ended.
const outlived = time.Second

// outlives reports a load that goes on, as done says, when its context has ended by LoadTimeout: callers have an error,
// and its slot is still taken.
func outlives[T any](l *loaders, key string, cause error, done <-chan T) {
	if !errors.As(cause, new(*loadTimeout)) || !l.tellsSlow() {
		return
	}
	l.tasks.Try(func() { // stop: the timer
		timer := time.NewTimer(outlived)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			l.tell(context.Background(), EventStillRuns, key, cause, "after", l.cfg.LoadTimeout+outlived)
		}
	})
}

func (l *loaders) withTimeout(ctx context.Context, key string) (context.Context, context.CancelFunc) {
	if l.cfg.LoadTimeout == off {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, l.cfg.LoadTimeout, &loadTimeout{key, l.cfg.LoadTimeout})
}

// runProtected calls the loader and always done, also when the loader panics or ends its goroutine.
func (l *loaders) runProtected(ctx, within context.Context, j *load, load *loading, done func(loaded)) {
	var out loaded
	var tags []string
	start := l.cfg.clock.Now()
	l.protect(ctx, j.key, func() (err error) {
		out.value, err = j.run(within)
		if err = givenUp(ctx, j.policy.absent(err)); err == nil && j.tags != nil {
			tags = j.tags(out.value)
		}
		if err == nil && j.encode != nil {
			j.encode(&out)
		}
		if err != nil { // asked here, because what makes a text of it may panic too
			out.absent, out.text = absentAlone(err), j.policy.names.Encode(err, l.cfg.textOf(err))
		}
		if out.absent && j.tags != nil {
			tags = j.tags(nil)
		}
		return err
	}, func(err error) {
		if _, panicked := err.(*PanicError); panicked { //nolint:errorlint // this very error
			out = loaded{text: l.cfg.textOf(err)}
		}
		out.err, out.took, out.ttl = err, l.cfg.clock.Since(start), load.chosen()
		out.tags, out.again = append(load.allTags(), tags...), load.again.Load()
		load.end(out.err)
		l.learn(j, out.tags)
		l.tellEnd(ctx, j, load, out.took, out.err)
		l.onLoad(j, out.took, out.err)
		if load.until == nil {
			l.drop(load)
		}
		done(out)
	})
}

// note notes that a loader begins to run, or does so no more.
func (l *loaders) note(load *loading, runs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !runs:
		delete(l.runs, load)
		return
	case l.runs == nil:
		l.runs = make(map[*loading]struct{})
	}
	l.runs[load] = struct{}{}
}

// longest is how many loaders run, with a key of the one that does for longest, and since when.
func (l *loaders) longest() (n int, key string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for load := range l.runs {
		if key == "" || load.began.Before(began) {
			key, began = load.keys[0], load.began
		}
	}
	return len(l.runs), key, began
}

// begin begins the run of a loader: it counts, is a task, and is shown to package admin.
func (l *loading) begin(ctx context.Context) (within context.Context) {
	l.began = time.Now()
	l.loaders.note(l, true)
	l.loaders.running.Add(1)
	l.kind.watched.Running.Add(1)
	within, l.task = l.loaders.cfg.Hooks.beginMany(ctx, TaskLoad, l.keys)
	l.shown = l.loaders.journal.View().Loading(l.keys[0], len(l.keys))
	return within
}

// end ends it, if it has begun.
func (l *loading) end(err error) {
	if l.task == nil {
		return
	}
	l.loaders.note(l, false)
	l.loaders.running.Add(-1)
	l.kind.watched.Running.Add(-1)
	l.task(End{Err: err})
	l.shown(failed(err))
}
