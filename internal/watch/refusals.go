package watch

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/run/logging"
)

// refusals are lasting troubles, one for each operation that Redis refuses and each of its errors: it is full, or the
// user lacks a right. One is over when the operation has succeeded, and was not refused like that for ten seconds: one
// node of a cluster may be full, and others not. Where nobody tries it for a minute, another trouble may begin before
// that is seen. What a trouble lasted is from its first refusal to its last.
type refusals struct {
	open func(e *episode, s says)
	on   atomic.Int64 // how many there are

	mu sync.Mutex
	by map[refusal]*refused
}

// refusal says what is refused, and with which error, as OOM.
type refusal struct{ op, code string }

// refused is an operation that is.
type refused struct {
	episode
	last time.Time
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
	of := refusal{op: op}
	if a := answer(nil); errors.As(err, &a) {
		of.code, _, _ = strings.Cut(a.Error(), " ")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.by[of]
	if e == nil {
		if e = new(refused); r.by == nil {
			r.by = make(map[refusal]*refused)
		}
		r.open(&e.episode, says{begun: "redis failed"})
		r.by[of] = e
	}
	if !e.on() {
		r.on.Add(1)
	} else if time.Since(e.last) >= apart {
		e.isOver(op, "redis refused") // and does again
	}
	e.begin(append(args, "error", err, "op", op)...)
	e.last = time.Now() // after the beginning, of which this may be all
}

// did notes that the operation succeeded.
func (r *refusals) did(op string) {
	if r.on.Load() == 0 {
		return // all is well: it costs no more than this
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, e := range r.by {
		if of.op == op && e.on() && time.Since(e.last) >= logging.Every {
			e.isOver(op, "redis refuses no more")
			r.on.Add(-1)
		}
	}
}
