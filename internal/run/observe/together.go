package observe

import (
	"context"
	"sync"
)

// together are Guards in which a feed invalidates the same names, each once: a name that one of them knows is none that is mistyped.
type together struct {
	guards int

	mu      sync.Mutex
	unknown map[string][]func() // what counts a name, of each Guard that does not know it
}

type togetherKey struct{}

// WithTogether is the context for invalidating names of one sort, keys or tags, in that many Guards.
func WithTogether(ctx context.Context, guards int) context.Context {
	return context.WithValue(ctx, togetherKey{}, &together{guards: guards, unknown: make(map[string][]func())})
}

// Unknown is called when a Guard does not know a name that is invalidated. It counts the name, as soon as no other Guard can know it.
func Unknown(ctx context.Context, name string, count func()) {
	t, _ := ctx.Value(togetherKey{}).(*together)
	if t == nil {
		count()
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unknown[name] = append(t.unknown[name], count)
	if len(t.unknown[name]) == t.guards {
		for _, count := range t.unknown[name] {
			count()
		}
	}
}
