package reader

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/gather"
	"github.com/cacheguard/go/internal/health"
)

// linger is how long a worker stays without work, as new goroutines have to grow their stacks first.
const linger = time.Second

// worker is the goroutine that sends a lane's batches, and the batch it is sending.
type worker struct {
	lane   *lane
	ctx    context.Context //nolint:containedctx // of its operations, ended by cancel
	cancel context.CancelFunc
	wake   chan struct{} // size 1
	timer  *time.Timer   // calls lane.overdue

	// Guarded by the lane's mutex.
	idle     bool
	busy     bool      // a batch is in flight
	detached bool      // the lane goes on without it
	givenUp  bool      // so is its batch
	sent     time.Time // when the batch in flight was
	detachAt time.Time // when detached will be, if it gets no reply
	deadline time.Time // when givenUp will be
	fires    time.Time // when the timer will; zero: not at all

	reprieves int // how often the deadline of the batch may be put off; see overdue

	// The batch. While one is in flight, overdue may take it over, after setting givenUp.
	permit    health.Permit   // to send it; Done is called by who answers it
	refused   error           // instead of a permit
	values    context.Context //nolint:containedctx // values only
	keys      []string
	reads     []*Read
	answers   []Read
	followers []*Read
	cmds      []*redis.StringCmd
}

func newWorker(l *lane) *worker {
	w := &worker{lane: l, wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

func (w *worker) run() {
	defer w.end()
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for {
		if !w.send() {
			return
		}
		idle.Reset(linger)
		select {
		case <-w.wake:
		case <-w.ctx.Done(): // the lane was closed
			return
		case <-idle.C:
			if w.lane.retire(w) {
				return
			}
			<-w.wake
		}
	}
}

// send sends batches until nothing is pending, and reports whether the worker still belongs to its lane. Before a batch
// is made, the callers who were just answered get a chance to ask again.
func (w *worker) send() bool {
	for {
		if !w.lane.full() {
			gather.WhileGrowing(w.lane.arrivals)
		}
		if !w.lane.take(w) {
			return true
		}
		if w.refused != nil {
			w.answers = failed(len(w.keys), w.refused)
		} else {
			w.fetch(operation{w.ctx, w.values})
		}
		if !w.lane.settle(w, w.answers) {
			return false
		}
	}
}

func failed(n int, err error) []Read {
	answers := make([]Read, n)
	for i := range answers {
		answers[i].Err = err
	}
	return answers
}

// outcome is what a batch says of Redis: nothing bad if any key was answered.
func outcome(answers []Read) error {
	for i := range answers {
		if !health.Unavailable(answers[i].Err) {
			return nil
		}
	}
	return answers[0].Err
}

// beginLocked starts the clock of a batch, whose time began at since.
func (w *worker) beginLocked(values context.Context, since time.Time) {
	timeout := w.lane.r.timeout
	w.values, w.busy, w.sent, w.reprieves = values, true, time.Now(), gather.Reprieves
	w.deadline = since.Add(timeout)
	if w.detachAt = w.sent.Add(timeout / 2); w.deadline.Before(w.detachAt) {
		w.detachAt = w.deadline
	}
	if w.fires.IsZero() || w.detachAt.Before(w.fires) { // else it fires before that, and looks again
		w.setTimerLocked(w.sent, w.detachAt)
	}
}

func (w *worker) setTimerLocked(now, at time.Time) {
	w.fires = at
	if w.timer == nil {
		w.timer = time.AfterFunc(at.Sub(now), func() { w.lane.overdue(w) })
	} else {
		w.timer.Reset(at.Sub(now))
	}
}

// stopLocked ends an idle worker; a busy one ends when it has no more to send.
func (w *worker) stopLocked() {
	if w.idle {
		w.cancel()
	}
}

func (w *worker) end() {
	w.cancel()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// operation is the context of a batch: the values of a call, but not its end.
type operation struct {
	context.Context                 //nolint:containedctx // its end
	values          context.Context //nolint:containedctx // values only
}

func (o operation) Value(key any) any { return o.values.Value(key) }
