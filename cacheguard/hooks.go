package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/cache/report"
)

// Hooks are called as things happen. Any of them may be nil. They must be quick, must not block, panic or call
// runtime.Goexit; they may be called concurrently.
type Hooks struct {
	// Begin is called when something begins that takes time, with its Task, its keys, and the caller's context. It returns
	// the context to go on with, which ends when ctx does, and a function that is called once at the end, which may be
	// nil. It is for tracing. Package github.com/cacheguard/go/otel uses it.
	Begin func(ctx context.Context, task Task, keys []string) (context.Context, func(End))

	// Origin returns a text about a load for the calls that wait for it, here and on other instances: which trace it
	// belongs to, say. They find it in End. The context comes from the call that made the load necessary. The lease in
	// Redis holds the text, of at most 24 bytes; a longer one is dropped. Anyone who may write to Redis can forge it. Nil:
	// loads have no origin.
	Origin func(ctx context.Context) string

	// OnGet is called at the end of every Get, with the caller's context. The outcome is empty when there was no answer.
	OnGet func(ctx context.Context, key string, outcome Outcome, took time.Duration, err error)

	// OnCache is called by NewCache with each new name of a Cache of this Guard. In the other hooks, the keys of that Cache
	// begin with the name and a colon.
	OnCache func(name string)

	// OnJoin is called when a Get joins a load, or a wait for one, that another call of this Guard has begun.
	OnJoin func(key string)

	// OnLoad is called after every run of a loader. The error of one that nobody waited for any more matches context.Canceled.
	OnLoad func(key string, took time.Duration, err error)

	// OnStale is called when a value is served past its TTL, within StaleFor, with the time since the TTL. It is also
	// called when the local tier stands in for a Redis that does not answer; the time is then 0 if the TTL is not over.
	// Such a value may have been invalidated.
	OnStale func(key string, past time.Duration)

	// OnRejected is called when a load may not store its value: something invalidated the key, or another load stored a
	// value, since it began.
	OnRejected func(key string)

	// OnUnstorable is called when a value was loaded but cannot be stored: the Codec failed, or could not decode what it had encoded, it is larger than
	// MaxValueBytes, or Redis refused it.
	OnUnstorable func(key string, err error)

	// OnDamaged is called when Redis holds something for the key that is no entry of this version, is truncated or
	// damaged, or cannot be decoded. The Get is a miss, and its load overwrites what is there, unless that belongs to a Cache and the
	// call names none, or another version of the program may have stored it a moment ago.
	OnDamaged func(key string, err error)

	// OnLeaseLost is called when a load that is still running no longer holds its lease, as it was not renewed in time. That an invalidation
	// ended the lease is no loss: the load then calls OnRejected.
	OnLeaseLost func(key string)

	// OnTakeover is called when a lease was taken over from a holder that did not renew it.
	OnTakeover func(key string)

	// OnRedisError is called when an operation of a call failed: get, acquire, fill, fail, invalidate or update. Renewals,
	// clean-ups and the subscription have no hook. OnLeaseLost and OnTakeover report what their failures lead to.
	OnRedisError func(err *RedisError)

	// OnBreaker is called when the Guard stops asking Redis for a while because it does not answer, and when it asks again.
	// On a cluster, each sixth of the slots has its own breaker, and each calls OnBreaker.
	OnBreaker func(open bool)
}

// tell calls the hook of an event, if there is one.
func (h *Hooks) tell(what report.What, key string, err error) {
	plain := map[report.What]func(string){report.Takeover: h.OnTakeover, report.LeaseLost: h.OnLeaseLost, report.Rejected: h.OnRejected}[what]
	failed := map[report.What]func(string, error){
		report.Damaged: h.OnDamaged, report.Unread: h.OnDamaged, report.Alien: h.OnDamaged, report.Unstorable: h.OnUnstorable,
	}[what]
	if plain != nil {
		plain(key)
	}
	if failed != nil {
		failed(key, err)
	}
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
