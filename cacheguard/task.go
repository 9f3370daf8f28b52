package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/protocol"
)

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

// identify makes the origin of the load, if it has one, part of the token for its lease, so that whoever finds the lease knows
// whose load it is.
func (r *rebuild) identify(ctx context.Context) {
	if origin := r.guard.cfg.Hooks.origin(ctx); origin != "" {
		r.token = protocol.NewToken(origin)
	}
}

// beginWait begins the task of waiting for another instance, unless that has begun.
func (r *rebuild) beginWait(ctx context.Context, got protocol.Acquired) {
	hooks := &r.guard.cfg.Hooks
	if hooks.Begin == nil && hooks.Origin == nil {
		return
	}
	r.origin = got.Origin()
	if r.endWait == nil {
		_, r.endWait = hooks.begin(ctx, TaskWait, r.job.key)
	}
}

// finishWait ends that task, if there is one: with the answer, or because the flight loads by itself (nil).
func (r *rebuild) finishWait(a *answer) {
	if r.endWait == nil {
		return
	}
	end := End{Origin: r.origin}
	if a != nil {
		end.Outcome, end.Err = a.outcome, a.err
	}
	r.endWait(end)
	r.endWait = nil
}
