package cacheguard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/watch"
)

// Observer hears what happens in a Guard, concurrently, from the call or load that makes it happen: a slow one holds
// up nobody else. A panic is recovered, and the first one logged. It must not call runtime.Goexit, nor Close. Ignore events
// you do not know: there will be more.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls the function.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// On is an Observer of one kind of event.
func On(what What, f func(ctx context.Context, e Event)) Observer {
	return ObserverFunc(func(ctx context.Context, e Event) {
		if e.What == what {
			f(ctx, e)
		}
	})
}

// Event is something that happens.
type Event struct {
	What What

	Key  string // the Guard's key, if it is about one
	Kind string // the Name of its Cache, if it has one

	Outcome Outcome       // of EventGet; empty: there was no answer
	Took    time.Duration // how long it took; of EventStale, since the TTL; of EventStepped, by how much
	On      bool          // whether something that lasts begins
	Err     error

	Attrs []any // more for people, as slog has it
}

// What is a kind of event.
type What string

// The events. Those from EventRejected on have a line of the log, unless it says otherwise.
const (
	EventGet         What = "get"         // a Get, a Fetch, or a key of a GetMany ends, with the caller's context
	EventCache       What = "cache"       // NewCache was called with a new Name
	EventJoin        What = "join"        // a Get joins a load, or a wait, of another call
	EventLoad        What = "load"        // a loader ends, or exceeds LoadTimeout; if nobody waited any more, Err matches context.Canceled
	EventStale       What = "stale"       // a value is served within StaleFor
	EventRedisError  What = "redis_error" // an operation failed, with a *RedisError
	EventInvalidated What = "invalidated" // with Config.Local: the Key was invalidated; empty: the Kind, a tag, or everything
	EventBreaker     What = "breaker"     // a circuit breaker opens (On), with its last error, or closes

	EventRejected      What = "rejected"       // a load may not store: the key was invalidated or stored meanwhile; not logged
	EventUnstorable    What = "unstorable"     // a value is not stored, by the Codec, MaxValueBytes, its tags or Redis
	EventDamaged       What = "damaged"        // an entry cannot be read: it is loaded again
	EventUnread        What = "unread"         // the same, but it stays: another version of the program may have stored it
	EventAlien         What = "alien"          // a call without a Cache finds an entry of one: it stays
	EventLeaseLost     What = "lease_lost"     // a load has lost its lease: it was not renewed in time
	EventOvertaken     What = "overtaken"      // the same: the key was invalidated
	EventTakeover      What = "takeover"       // a lease that was not renewed was taken over
	EventUncompressed  What = "uncompressed"   // a value is stored without compression
	EventGated         What = "gated"          // Config.Gate refuses a call
	EventRefreshFailed What = "refresh_failed" // a load in the background failed
	EventPanicked      What = "panicked"
	EventSlowLoad      What = "slow_load"  // a load took longer than SlowLoad
	EventStillRuns     What = "still_runs" // a load takes longer than SlowLoad, or goes on after LoadTimeout
	EventWaits         What = "waits"      // a load waits for an Update
	EventClosing       What = "closing"    // Close waits
	EventStepped       What = "stepped"    // the clock of Redis stepped
	EventDropped       What = "dropped"    // the local tier was emptied, after messages may have been missed
	EventForgotten     What = "forgotten"  // all entries are invalid, or gone
	EventObserver      What = "observer"   // an Observer's first panic
)

// observers are all Observers of a Guard: its watch, which has the Logger, and those of its Config.
type observers struct {
	watch  *watch.Journal
	all    []observing
	beside beside
}

type observing struct {
	Observer

	panicked atomic.Bool // before
}

// watching is the watch of a Guard, as an Observer.
type watching struct{ *watch.Journal }

func (w watching) Observe(ctx context.Context, e Event) {
	if e.What == EventGet {
		e.Outcome = outcomeOf(e.Outcome, e.Err)
	}
	w.Journal.Observe(ctx, watch.Event{
		What: watch.What(e.What), Key: e.Key, Kind: e.Kind, Outcome: string(e.Outcome), Took: e.Took, On: e.On, Err: e.Err, Attrs: e.Attrs,
	})
}

func (o *observers) open(j *watch.Journal, others []Observer) {
	o.watch, o.all = j, make([]observing, 1+len(others))
	o.all[0].Observer = watching{j}
	for i, other := range others {
		o.all[i+1].Observer = other
	}
}

// wantAnswers reports whether anybody wants to know of each Get: before, a hit costs only this.
func (o *observers) wantAnswers() bool { return o.haveOthers() || o.watch.Viewer.Load() != nil }

// haveOthers reports whether anybody but the watch is told.
func (o *observers) haveOthers() bool { return len(o.all) > 1 }

// mostBeside is how many events wait to be told beside calls, at most. Then all invalidations become one, of everything,
// and what came last is part of that, or not told.
const mostBeside = 10_000

// beside are events that happen in no call, for all but the watch. One goroutine tells them, in their order, while there
// are any: so an Observer that is slow holds up neither messages, renewals nor requests, and a burst does not make
// thousands.
type beside struct {
	mu      sync.Mutex
	events  []Event
	telling bool
}

// add reports whether tellBeside has to run.
func (b *beside) add(e Event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) >= mostBeside {
		b.events = slices.DeleteFunc(b.events, func(e Event) bool { return e.What == EventInvalidated })
		e = Event{What: EventInvalidated}
	}
	b.events = append(b.events, e)
	begins := !b.telling
	b.telling = true
	return begins
}

// take takes all; none: tellBeside ends.
func (b *beside) take() (all []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.events = b.events, nil
	b.telling = len(all) > 0
	return all
}

func (o *observers) tellBeside() {
	for all := o.beside.take(); len(all) > 0; all = o.beside.take() {
		for _, e := range all {
			o.tellSome(context.Background(), o.all[1:], e)
		}
	}
}

func (o *observers) tell(ctx context.Context, e Event) { o.tellSome(ctx, o.all, e) }

func (o *observers) tellSome(ctx context.Context, some []observing, e Event) {
	for i := range some {
		if stopped := some[i].tell(ctx, e); stopped != nil && !some[i].panicked.Swap(true) {
			o.tell(ctx, Event{What: EventObserver, Attrs: []any{"observer", fmt.Sprintf("%T", some[i].Observer), "panic", said(stopped), "event", string(e.What)}})
		}
	}
}

// tell tells one Observer, and returns what it panicked with.
func (o *observing) tell(ctx context.Context, e Event) (panicked any) {
	defer func() { panicked = recover() }()
	o.Observe(ctx, e)
	return nil
}

// Hooks change the contexts of calls and loads. Either may be nil. They are called concurrently, must be quick, and
// must not block, panic or call runtime.Goexit.
type Hooks struct {
	// Begin is called when a Task begins, with its keys and the caller's context. It returns the context to go on with,
	// and a function that is called once at the end, or nil.
	Begin func(ctx context.Context, task Task, keys []string) (context.Context, func(End))

	// Origin returns up to 24 bytes of text about a load, such as its trace, for the End of the calls that wait for it,
	// here and on other instances. It can be forged by who may write to Redis.
	Origin func(ctx context.Context) string
}

// Task is a kind of work that Hooks.Begin reports.
type Task string

// The tasks. Each belongs to the context of the task that it is a part of.
const (
	TaskGet        Task = "get" // a Get or a Fetch
	TaskGetMany    Task = "get_many"
	TaskLoad       Task = "load"   // a loader, with the values of its first caller's context
	TaskWait       Task = "wait"   // waiting for another's load, or for an update
	TaskUpdate     Task = "update" // an Update or UpdateMany, with the wait for the locks
	TaskInvalidate Task = "invalidate"
)

// End is how a task ended.
type End struct {
	// Outcome is of a get or a wait; empty if there was no answer.
	Outcome Outcome

	// Origin is what Hooks.Origin returned for the load that a wait was for; empty if unknown, as when the caller left
	// first.
	Origin string

	Err error
}

func noEnd(End) {}

// begin begins the task of one key. Without Begin it costs nothing.
func (h *Hooks) begin(ctx context.Context, task Task, key string) (context.Context, func(End)) {
	if h.Begin == nil {
		return ctx, noEnd
	}
	return h.beginMany(ctx, task, []string{key})
}

func (h *Hooks) beginMany(ctx context.Context, task Task, keys []string) (context.Context, func(End)) {
	if h.Begin == nil {
		return ctx, noEnd
	}
	ctx, end := h.Begin(ctx, task, keys)
	if end == nil {
		end = noEnd
	}
	return ctx, end
}

func (h *Hooks) origin(ctx context.Context) string {
	if h.Origin == nil {
		return ""
	}
	return h.Origin(ctx)
}
