package watch

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/logging"
)

// refusals are lasting troubles, one for each error with which Redis refuses: it is full, or takes no writes. Where the
// error is about the operation, as that the user lacks a right, each has one. It is over when an operation that was
// refused has succeeded, and none was refused like that for ten seconds: one node of a cluster may be full, and others
// not. Where nobody tries for a minute, another trouble may begin before that is seen. What a trouble lasted is from its
// first refusal to its last.
type refusals struct {
	open func(e *episode, s says)
	on   atomic.Int64 // how many there are

	whole atomic.Int64 // when Redis last refused what isWhole, in ns since 1970

	mu sync.Mutex
	by map[refusal]*refused
}

// refusal says with which error something is refused, as OOM, and what; empty: that is no matter.
type refusal struct{ op, code string }

// refused is what is.
type refused struct {
	episode
	ops  []string
	last time.Time
}

// apart is how long nothing was refused, or tried, between two troubles.
const apart = time.Minute

// isOver ends the trouble.
func (e *refused) isOver(said string) {
	e.rename(e.begun, said)
	e.endAt(e.last, "op", e.ops[0], "quiet", logging.Text(time.Since(e.last)))
	e.ops = nil
}

// begin notes that the operation was refused.
func (r *refusals) begin(op string, err error, args ...any) {
	of, a := refusal{op: op}, answer(nil)
	if errors.As(err, &a) {
		of.code, _, _ = strings.Cut(a.Error(), " ")
	}
	if isWhole(of.code) {
		of.op = ""
		r.whole.Store(time.Now().UnixNano())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.by[of]
	if e == nil {
		e = new(refused)
		r.open(&e.episode, says{begun: "redis failed", over: "redis refuses no more"})
		r.by[of] = e
	}
	if !e.on() {
		r.on.Add(1)
	} else if time.Since(e.last) >= apart {
		e.isOver("redis refused") // and does again
	}
	if !slices.Contains(e.ops, op) {
		e.ops = append(e.ops, op)
	}
	e.begin(append(args, "error", err, "op", op)...)
	e.last = time.Now() // after the beginning, of which this may be all
}

// isWhole reports whether an error with that code is about Redis, and no matter what it was asked.
func isWhole(code string) bool {
	return slices.Contains([]string{"OOM", "READONLY", "NOREPLICAS", "MISCONF", "NOAUTH", "WRONGPASS"}, code)
}

// did notes that the operation succeeded.
func (r *refusals) did(op string) {
	if r.on.Load() == 0 {
		return // all is well: it costs no more than this
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.by {
		if slices.Contains(e.ops, op) && time.Since(e.last) >= logging.Every {
			e.isOver("redis refuses no more")
			r.on.Add(-1)
		}
	}
}
