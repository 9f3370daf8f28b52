package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/protocol"
)

// job is what a flight needs to know of the call that started it.
type job struct {
	key       string
	valueKey  string
	shape     protocol.Shape
	load      func(context.Context) (any, error) // returns a *V
	nested    bool                               // asked for by a loader of the same Guard
	writing   bool                               // asked for by who updates the key
	unlimited bool                               // it does not count for MaxLoads
	aged      bool                               // the cache has a value that seems too old, by the estimate of the server's clock
	batch     *batch                             // of a GetMany; nil for a Get
}

// pass says that a batch need not wait for this key any more.
func (j *job) pass() {
	if j.batch != nil {
		j.batch.pass(j.key)
	}
}

func newJob[V any](ctx context.Context, g *Guard, key, valueKey string, load func(context.Context) (V, error)) *job {
	j := &job{
		key: key, valueKey: valueKey, shape: protocol.ShapeOf[V]{},
		nested: loadingOf(ctx).within(g), writing: updateOf(ctx).includes(g, key),
	}
	j.load = func(ctx context.Context) (any, error) {
		v, err := load(ctx)
		return &v, err
	}
	return j
}

func (j *job) flight(m mode) flightKey {
	return flightKey{key: j.key, shape: j.shape, mode: m, nested: j.nested, writing: j.writing}
}

// loading is a load under way, found in the context of its loader.
type loading struct {
	guard  *Guard
	keys   []string
	parent *loading     // the load whose loader made this one necessary
	ttl    atomic.Int64 // set by SetTTL; unset: the Guard's
}

// unset is a TTL that nobody chooses: too long for any clock.
const unset = int64(^uint64(0) >> 1)

type loadingKey struct{}

// outsideLoads is the context for what is no part of the load it was asked for in.
func outsideLoads(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadingKey{}, (*loading)(nil))
}

func loadingOf(ctx context.Context) *loading {
	l, _ := ctx.Value(loadingKey{}).(*loading)
	return l
}

// includes reports whether the key is being loaded by l, or by one for whose sake l is.
func (l *loading) includes(g *Guard, key string) bool {
	for ; l != nil; l = l.parent {
		if l.guard == g && slices.Contains(l.keys, key) {
			return true
		}
	}
	return false
}

// within reports whether a loader of the Guard is under way.
func (l *loading) within(g *Guard) bool {
	for ; l != nil; l = l.parent {
		if l.guard == g {
			return true
		}
	}
	return false
}

// SetTTL chooses the TTL of the entry being loaded. It is called by a loader with the context it was given; elsewhere
// it does nothing. The Guard's Jitter and StaleFor apply as always. A ttl of 0 or less: the value is handed to those
// who wait for it, and not stored. For ErrNotFound the shorter of ttl and NegativeTTL counts.
func SetTTL(ctx context.Context, ttl time.Duration) {
	if l := loadingOf(ctx); l != nil {
		l.ttl.Store(int64(min(max(ttl, 0), longest)))
	}
}

// loaded is what a loader returned.
type loaded struct {
	value  any // *V
	err    error
	absent bool   // err is ErrNotFound
	text   string // of err
	took   time.Duration
	ttl    int64 // as set by SetTTL, or unset
}

// runLoader runs the loader, under LoadTimeout, and frees a slot of MaxLoads when it returns. When the context ends
// first, the loader is left to itself: nobody may have to wait for one that ignores its context.
func (g *Guard) runLoader(ctx context.Context, j *job, s slot) loaded {
	if ctx.Err() != nil { // nobody waits any more
		g.freeSlot(s)
		return loaded{err: context.Cause(ctx)}
	}
	l := &loading{guard: g, keys: []string{j.key}, parent: loadingOf(ctx)}
	l.ttl.Store(unset)
	ctx, cancel := g.withLoadTimeout(context.WithValue(ctx, loadingKey{}, l), j.key)
	done := make(chan loaded, 1)
	g.tasks.Go(func() { // owner: the Guard; stop: ctx; joined by Close
		defer cancel()
		defer g.freeSlot(s)
		g.runProtected(ctx, j, l, done)
	})
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
		return loaded{err: cause, text: cause.Error()}
	}
}

func (g *Guard) withLoadTimeout(ctx context.Context, key string) (context.Context, context.CancelFunc) {
	if g.cfg.LoadTimeout == off {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, g.cfg.LoadTimeout, fmt.Errorf(
		"cacheguard: load of %q took longer than LoadTimeout (%v): %w", key, g.cfg.LoadTimeout, context.DeadlineExceeded))
}

// runProtected calls the loader and always sends one result, also when the loader panics or ends its goroutine.
func (g *Guard) runProtected(ctx context.Context, j *job, l *loading, done chan<- loaded) {
	loaders := int64(1)
	if j.batch != nil {
		loaders = 0 // it only waits for the batch's
	}
	g.loading.Add(loaders)
	var out loaded
	start := time.Now()
	g.protect(ctx, j.key, func() (err error) {
		out.value, err = j.load(ctx)
		if err != nil { // asked here, as an error of the loader's own making may panic too
			_, panicked := errors.AsType[*PanicError](err)
			out.absent, out.text = !panicked && errors.Is(err, ErrNotFound), err.Error()
		}
		return err
	}, func(err error) {
		if _, panicked := err.(*PanicError); panicked { //nolint:errorlint // this very error
			out = loaded{text: err.Error()}
		}
		out.err, out.took, out.ttl = err, time.Since(start), l.ttl.Load()
		g.loading.Add(-loaders)
		g.cfg.Hooks.loaded(j.key, out.took, out.err)
		done <- out
	})
}

// protect calls a loader and then always finish, with the loader's error, or a *PanicError when it panicked or ended its
// goroutine.
func (g *Guard) protect(ctx context.Context, key string, load func() error, finish func(error)) {
	returned := false
	var err error
	defer func() {
		if panicked := recover(); !returned {
			if panicked == nil {
				panicked = errGoexit
			}
			stack := debug.Stack()
			err = &PanicError{Key: key, Value: panicked, Stack: stack}
			g.panicked.log(ctx, g.cfg.Logger, slog.LevelError, "loader panicked", key, "stack", string(stack))
		}
		finish(err)
	}()
	err = load()
	returned = true
}
