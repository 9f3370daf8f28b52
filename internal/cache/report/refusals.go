package report

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// refusals are lasting troubles, one for each operation that Redis refuses: it is full, or the user lacks a right. One is over when the operation
// has succeeded, and was not refused for ten seconds: one node of a cluster may be full, and others not.
type refusals struct {
	logger *slog.Logger
	on     atomic.Int64 // how many operations are refused

	mu sync.Mutex
	by map[string]*refused // operations
}

// refused is an operation that is.
type refused struct {
	episode
	last time.Time
}

// begin notes that the operation was refused.
func (r *refusals) begin(op string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.by[op]
	if e == nil {
		e = &refused{episode: episode{logger: r.logger, begun: "redis failed", over: "redis refuses no more"}}
		if r.by == nil {
			r.by = make(map[string]*refused)
		}
		r.by[op] = e
	}
	if !e.episode.on() {
		r.on.Add(1)
	}
	e.last = time.Now()
	e.episode.begin(append(args, "op", op)...)
}

// did notes that the operation succeeded.
func (r *refusals) did(op string) {
	if r.on.Load() == 0 {
		return // all is well: it costs no more than this
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.by[op]; e != nil && e.episode.on() && time.Since(e.last) >= logEvery {
		e.end("op", op)
		r.on.Add(-1)
	}
}

func (r *refusals) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.by {
		e.close()
	}
}
