package cacheguard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/intent"
)

var errNoUpdate = errors.New("cacheguard: also: the context is not that of a write")

// Also names, within the write of an Update, UpdateMany or Put, what else it changes: tags, and keys that only its statements told. It is called with
// the context that write was given, before write commits. An error says that Redis could not be told, and that write must not commit.
//
// What is named is invalidated when write has returned or, if the process dies, within twice LeaseTTL. As with Intend, nobody waits for it: only the
// keys of the Update are locked. A value that a Put stores is invalidated too, if it has a tag that is named.
//
// It takes one round trip, and one more after write.
func Also(ctx context.Context, c Changes) error {
	u := updateOf(ctx)
	if u == nil {
		return errNoUpdate
	}
	if err := c.check(); err != nil {
		return err
	}
	in, err := u.also.begin(u.guard)
	if err != nil {
		return err
	}
	c.Keys = slices.DeleteFunc(slices.Clone(c.Keys), func(key string) bool { return slices.Contains(u.keys, key) })
	of := &Intent{u.guard, in}
	return of.Also(ctx, c)
}

// alsoIntent is the intent on what a write names, if it does.
type alsoIntent struct {
	atomic.Pointer[intent.Intent]

	mu   sync.Mutex
	over bool // write has returned
}

func (a *alsoIntent) begin(g *Guard) (*intent.Intent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, intent.ErrDone
	}
	if in := a.Load(); in != nil {
		return in, nil
	}
	in := g.intents.Begin()
	if in == nil {
		return nil, ErrClosed
	}
	a.Store(in)
	return in, nil
}

// end ends it, even if ctx has ended.
func (a *alsoIntent) end(ctx context.Context) error {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	if in := a.Load(); in != nil {
		return in.Done(context.WithoutCancel(ctx))
	}
	return nil
}
