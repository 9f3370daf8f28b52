package send

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/run/yield"
)

// linger is how long a worker stays without work, as new goroutines have to grow their stacks first.
const linger = time.Second

// worker is a goroutine that carries parcels of its lane, one after the other.
type worker struct {
	lane   *lane
	ctx    context.Context //nolint:containedctx // of its operations, ended by cancel
	cancel context.CancelFunc
	rest   *time.Timer
	flight flight // the last one: nobody but the worker looks at it once it has landed
}

func newWorker(l *lane) *worker {
	w := &worker{lane: l, rest: time.NewTimer(linger)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// run begins as the worker that gathers.
func (w *worker) run() {
	defer w.cancel()
	defer w.rest.Stop()
	for w.carryAll() && w.await() {
	}
}

// carryAll carries parcels until the worker rests, and reports whether it is still the lane's.
func (w *worker) carryAll() (goesOn bool) {
	l := w.lane
	for gathers := true; gathers; {
		if !l.full() {
			yield.WhileGrowing(l.arrivals) // callers that were just answered may ask again
		}
		f, refused := l.take(w)
		for _, p := range refused {
			p.fail(l.breaker.Refusal())
		}
		if f == nil {
			return true
		}
		gathers, goesOn = l.complete(f, f.parcel.carry(f.parcel.under(w.ctx)))
	}
	return goesOn
}

// await waits until the worker, which rests, should gather again. Not ok: nobody needs it any more.
func (w *worker) await() bool {
	l := w.lane
	w.rest.Reset(linger)
	select {
	case <-l.wake:
		return true
	case <-l.ended:
	case <-w.rest.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle == 0 { // all are woken, at the last moment
		<-l.wake
		return true
	}
	l.idle--
	return false
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

func (o *operation) Value(key any) any { return o.caller.Value(key) }
