package cacheguard

import (
	"context"
)

// Hooks change what calls and loads work with; an Observer hears what happens. Either may be nil. They must be quick,
// must not block, panic or call runtime.Goexit; they may be called concurrently.
type Hooks struct {
	// Begin is called when something begins that takes time, with its Task, its keys, and the caller's context. It
	// returns the context to go on with, and a function that is called once at the end, or nil. Package otel uses it.
	Begin func(ctx context.Context, task Task, keys []string) (context.Context, func(End))

	// Origin returns a text about a load for the calls that wait for it, here and on other instances: which trace it
	// belongs to, say. They find it in End. The context comes from the call that made the load necessary. The lease in
	// Redis holds the text, of at most 24 bytes; a longer one is dropped. Anyone who may write to Redis can forge it.
	// Nil: loads have no origin.
	Origin func(ctx context.Context) string
}

// Task is a kind of work that Hooks.Begin reports.
type Task string

// The tasks. Each belongs to the context of the task that it is a part of.
const (
	TaskGet        Task = "get"        // a Get or a Fetch
	TaskGetMany    Task = "get_many"   // a GetMany
	TaskLoad       Task = "load"       // a run of a loader; its context has the values of the first call that wants it
	TaskWait       Task = "wait"       // waiting for a load of another call, here or on another instance, or for an update
	TaskUpdate     Task = "update"     // an Update or UpdateMany, with the wait for the locks
	TaskInvalidate Task = "invalidate" // an Invalidate
)

// End is how a task ended.
type End struct {
	// Outcome is the outcome of a get or of a wait. It is empty if there was no answer, and for
	// other tasks.
	Outcome Outcome

	// Origin is what Hooks.Origin returned, on the loading instance, for the load that a wait was for. It is empty if
	// that is not known: for example, if the caller left a load of this instance before its end.
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
