package watch

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/logging"
)

// refusals are lasting troubles, one for each operation that Redis refuses: it is full, or the user lacks a right. One is over when the operation
// has succeeded, and was not refused for ten seconds: one node of a cluster may be full, and others not. Where nobody tries it meanwhile, another trouble
// may begin before that is seen: with another error, or a minute later. What a trouble lasted is from its first refusal to its last.
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
	code string // which error it was, as OOM
}

// apart is how long nothing was refused, or tried, between two troubles.
const apart = time.Minute

// isOver ends the trouble.
func (e *refused) isOver(op, said string) {
	e.rename(e.begun, said)
	e.endAt(e.last, "op", op, "quiet", logging.Text(time.Since(e.last)))
}

// begin notes that the operation was refused.
func (r *refusals) begin(op string, err error, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.by[op]
	if e == nil {
		e = &refused{episode: episode{logger: r.logger, says: says{begun: "redis failed"}}}
		if r.by == nil {
			r.by = make(map[string]*refused)
		}
		r.by[op] = e
	}
	code := ""
	if a, answered := errors.AsType[answer](err); answered {
		code, _, _ = strings.Cut(a.Error(), " ")
	}
	quiet := time.Since(e.last)
	switch {
	case !e.on():
		r.on.Add(1)
	case quiet >= apart, quiet >= logging.Every && code != e.code:
		e.isOver(op, "redis refused") // and does again
	}
	e.begin(append(args, "error", err, "op", op)...)
	e.last, e.code = time.Now(), code // after the beginning, of which this may be all
}

// did notes that the operation succeeded.
func (r *refusals) did(op string) {
	if r.on.Load() == 0 {
		return // all is well: it costs no more than this
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.by[op]; e != nil && e.on() && time.Since(e.last) >= logging.Every {
		e.isOver(op, "redis refuses no more")
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
