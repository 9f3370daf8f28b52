package update

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cacheguard/go/internal/cache/intent"
)

// Also names what else the write changes. Keys of the update are named already.
func (u *Update) Also(ctx context.Context, keys, tags []string) error {
	in, err := u.also.begin(u.of)
	if err != nil {
		return err
	}
	if !u.of.Life.Begin() {
		return u.of.Closed
	}
	defer u.of.Life.Done()
	return in.Announce(ctx, slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(u.keys, key) }), tags)
}

// Named is the intent on what the write has named; nil: nothing.
func (u *Update) Named() *intent.Intent { return u.also.Load() }

// also is the intent on what a write names, if it does.
type also struct {
	atomic.Pointer[intent.Intent]

	mu   sync.Mutex
	over bool // write has returned
}

func (a *also) begin(of *Updates) (*intent.Intent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, intent.ErrDone
	}
	if in := a.Load(); in != nil {
		return in, nil
	}
	in := of.Begin()
	if in == nil {
		return nil, of.Closed
	}
	a.Store(in)
	return in, nil
}

// end ends it, even if ctx has ended.
func (a *also) end(ctx context.Context) error {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	if in := a.Load(); in != nil {
		return in.Done(ctx)
	}
	return nil
}
