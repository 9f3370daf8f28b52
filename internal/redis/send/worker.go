package send

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/run/yield"
)

// linger is how long a worker stays without work, as new goroutines have to grow their stacks first.
const linger = time.Second

// worker is a goroutine that carries parcels of its lane, one after the other.
type worker struct {
	lane   *lane
	ctx    context.Context //nolint:containedctx // of its operations, ended by cancel
	cancel context.CancelFunc
	wake   chan struct{} // size 1
	idle   *time.Timer
	flight flight // the last one: nobody but the worker looks at it once it has landed
	rests  bool   // it is one of lane.idle, or was until it was woken; guarded by lane.mu
}

func newWorker(l *lane) *worker {
	w := &worker{lane: l, wake: make(chan struct{}, 1), idle: time.NewTimer(linger)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// run begins as the worker that gathers.
func (w *worker) run() {
	defer w.cancel()
	defer w.idle.Stop()
	for w.carryAll() && w.await() {
	}
}

// carryAll carries parcels until the worker rests, and reports whether it is still the lane's.
func (w *worker) carryAll() bool {
	l := w.lane
	for {
		if !l.full() {
			yield.WhileGrowing(l.arrivals) // callers that were just answered may ask again
		}
		f, refused := l.take(w)
		for _, p := range refused {
			p.fail(breaker.ErrOpen)
		}
		if f == nil {
			return true
		}
		err := f.parcel.carry(operation{w.ctx, f.parcel.values()})
		if !l.complete(f, err) {
			return false
		}
		if w.resting() {
			return true
		}
	}
}

// await waits until the worker should gather again. Not ok: nobody needs it any more.
func (w *worker) await() bool {
	w.idle.Reset(linger)
	select {
	case <-w.wake:
		w.awake()
		return true
	case <-w.ctx.Done(): // the lane was closed
	case <-w.idle.C:
	}
	if w.lane.retire(w) {
		return false
	}
	<-w.wake // at the last moment
	w.awake()
	return true
}

// restLocked makes the worker one that may be woken; when its lane is closed, it ends.
func (w *worker) restLocked() {
	w.rests = true
	w.lane.idle = append(w.lane.idle, w)
	if w.lane.closed {
		w.cancel()
	}
}

func (w *worker) resting() bool {
	w.lane.mu.Lock()
	defer w.lane.mu.Unlock()
	return w.rests
}

func (w *worker) awake() {
	w.lane.mu.Lock()
	defer w.lane.mu.Unlock()
	w.rests = false
}

// retire takes an idle worker off the lane, and reports whether it was still idle.
func (l *lane) retire(w *worker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.idle, w)
	if i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
	}
	return i >= 0
}

func (l *lane) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.full()
}

// operation is the context of a parcel: the values of a caller's, but not its end.
type operation struct {
	context.Context                 //nolint:containedctx // its end
	caller          context.Context //nolint:containedctx // values only
}

func (o operation) Value(key any) any { return o.caller.Value(key) }
