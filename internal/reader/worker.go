package reader

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/gather"
)

// linger is how long a worker stays without work, as new goroutines have to grow their stacks first.
const linger = time.Second

// worker is the goroutine that sends a lane's batches, and the batch it is sending.
type worker struct {
	lane   *lane
	ctx    context.Context //nolint:containedctx // of its operations, ended by cancel
	cancel context.CancelFunc
	wake   chan struct{} // size 1
	timer  *time.Timer   // calls lane.giveUp

	// Guarded by the lane's mutex.
	idle     bool
	busy     bool      // a batch is in flight
	replaced bool      // its batch was given up; it has nothing more to do with the lane
	deadline time.Time // of the batch in flight
	armed    bool      // the timer will fire at some deadline

	// The batch. While one is in flight, giveUp may take it over, after setting replaced.
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
		gather.WhileGrowing(w.lane.arrivals)
		if !w.lane.take(w) {
			return true
		}
		w.fetch(operation{w.ctx, w.values})
		if !w.lane.settle(w, w.answers) {
			return false
		}
	}
}

// beginLocked starts the clock of a batch.
func (w *worker) beginLocked(values context.Context) {
	w.values, w.busy, w.deadline = values, true, time.Now().Add(w.lane.r.timeout)
	if w.armed {
		return // it fires no later than this, and looks again
	}
	w.armed = true
	if w.timer == nil {
		w.timer = time.AfterFunc(w.lane.r.timeout, func() { w.lane.giveUp(w) })
	} else {
		w.timer.Reset(w.lane.r.timeout)
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
