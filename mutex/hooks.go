package mutex

import (
	"context"
	"time"
)

// Hooks are called when locks are requested and released. Any of them may be nil. They must be quick, must not block and
// must not panic; they may be called concurrently.
type Hooks struct {
	// Begin is called at the beginning of every call that asks for one lock, with its context and how it asks: Lock or
	// TryLock, and RLock or TryRLock of package rwlock. It returns a function that is called at the end of that call, with its error, and that may be nil. It is for
	// tracing. Package github.com/cacheguard/go/otel uses it.
	Begin func(ctx context.Context, call, name string) func(err error)

	// OnLock is called at the end of every call that asked for one lock, with how long that took. An error says why the
	// caller does not have it.
	OnLock func(name string, took time.Duration, err error)

	// OnUnlock is called when a lease is unlocked, with how long it was held and what Unlock returns. It is called once
	// for each lease, but not for one that is never unlocked, as may happen after it was lost.
	OnUnlock func(name string, held time.Duration, err error)
}
