package engine

import (
	"context"
	"sync"

	"github.com/cacheguard/go/internal/watch/observe"
)

// unknown are names of one sort, keys or tags, that some Guards do not know in which a feed invalidates them, each once: a name that one of them
// knows is none that is mistyped.
type unknown struct {
	guards int

	mu     sync.Mutex
	counts map[string][]func() // what counts a name, of each Guard that does not know it
}

// inAll is the context for invalidating the same names in that many Guards.
func inAll(ctx context.Context, guards int) context.Context {
	u := &unknown{guards: guards, counts: make(map[string][]func())}
	return observe.WithJudge(ctx, u.judge)
}

// judge counts the name, as soon as no other Guard can know it.
func (u *unknown) judge(name string, count func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts[name] = append(u.counts[name], count)
	if len(u.counts[name]) == u.guards {
		for _, count := range u.counts[name] {
			count()
		}
	}
}
