package reader

import (
	"context"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/gather"
	"github.com/cacheguard/go/internal/health"
)

// lane sends one batch at a time.
type lane struct {
	r       *Reader
	breaker *health.Breaker

	mu      sync.Mutex
	closed  bool
	worker  *worker          // who sends the batches; nil before the first one and after a while without any
	values  context.Context  //nolint:containedctx // of the first call of the next batch, for the sake of its values
	pending map[string]*Read // not sent yet
	order   []string         // its keys, first come first sent
	joined  uint64           // counts calls, to see whether there are more on their way
	heard   time.Time        // when Redis answered last
}

// join returns the pending read of the key, a new one if there is none.
func (l *lane) join(ctx context.Context, key string) (*Read, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	l.joined++
	if read, found := l.pending[key]; found {
		return read, nil
	}
	if l.pending == nil {
		l.pending = make(map[string]*Read)
	}
	if len(l.order) == 0 {
		l.values = ctx
	}
	read := &Read{done: make(chan struct{}), asked: time.Now()}
	l.pending[key] = read
	l.order = append(l.order, key)
	l.wakeLocked()
	return read, nil
}

// wakeLocked sees to it that somebody sends what is pending.
func (l *lane) wakeLocked() {
	switch {
	case l.worker == nil:
		l.worker = newWorker(l)
		l.r.running.Go(l.worker.run) // owner: the Reader; stop: idleness, or close; joined by Close
	case l.worker.idle:
		l.worker.idle = false
		l.worker.wake <- struct{}{} // size 1, and empty: the worker was idle
	}
}

// arrivals is how many calls have come so far.
func (l *lane) arrivals() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.joined
}

// take makes what is pending the worker's batch, and reports whether there was anything. If not, the worker is idle.
func (l *lane) take(w *worker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.order) > 0 && l.lateLocked(l.order[0], time.Now()) {
		l.mu.Unlock()
		starved := gather.Starved()
		l.mu.Lock()
		if !starved {
			l.dropLateLocked()
		}
	}
	n := min(len(l.order), maxBatch)
	if n == 0 {
		w.idle = true
		if l.closed {
			w.cancel()
		}
		return false
	}
	w.keys, w.reads = append(w.keys[:0], l.order[:n]...), w.reads[:0]
	for _, key := range w.keys {
		w.reads = append(w.reads, l.pending[key])
		delete(l.pending, key)
	}
	l.order = l.order[:copy(l.order, l.order[n:])]
	if w.permit, w.refused = l.breaker.Allow(); w.refused == nil {
		w.beginLocked(l.values, l.sinceLocked(w.reads[0]))
	}
	return true
}

// full reports whether more than a batch is pending already.
func (l *lane) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.order) >= maxBatch
}

// sinceLocked is when the time of a read began: when it was asked for, or when Redis answered another, if that was later. As long as
// there are answers, waiting for one's turn is better than doing without.
func (l *lane) sinceLocked(read *Read) time.Time {
	if l.heard.After(read.asked) {
		return l.heard
	}
	return read.asked
}

// lateLocked reports whether the pending read of the key has used up its time.
func (l *lane) lateLocked(key string, now time.Time) bool {
	return now.Sub(l.sinceLocked(l.pending[key])) >= l.r.timeout
}

// dropLateLocked answers the reads that had to wait for their turn until their time was up.
func (l *lane) dropLateLocked() {
	now, n := time.Now(), 0
	for _, key := range l.order {
		if !l.lateLocked(key, now) {
			break
		}
		read := l.pending[key]
		read.Err = l.r.noAnswer()
		close(read.done)
		delete(l.pending, key)
		n++
	}
	l.order = l.order[:copy(l.order, l.order[n:])]
}

// settle answers the worker's batch, unless that was given up, and reports whether the worker may go on. Those who wait
// for the next read of a missing key are taken off the lane before anybody is told: who acts on the answer and asks
// again must not be among them.
func (l *lane) settle(w *worker, answers []Read) bool {
	l.mu.Lock()
	if w.givenUp {
		l.mu.Unlock()
		return false
	}
	w.busy = false
	if outcome(answers) == nil {
		l.heard = time.Now()
	}
	goOn := !w.detached
	w.followers = w.followers[:0]
	for i, read := range w.reads {
		read.Raw, read.Err = answers[i].Raw, answers[i].Err
		if next, waits := l.pending[w.keys[i]]; waits && read.Raw == nil && read.Err == nil {
			delete(l.pending, w.keys[i])
			l.unqueueLocked(w.keys[i])
			w.followers = append(w.followers, next)
		}
	}
	l.mu.Unlock()
	if w.refused == nil {
		w.permit.Done(outcome(answers))
	}
	finish(w.followers)
	finish(w.reads)
	return goOn
}

func (l *lane) unqueueLocked(key string) {
	for i, k := range l.order {
		if k == key {
			l.order = append(l.order[:i], l.order[i+1:]...)
			return
		}
	}
}

// overdue is called when a worker may have waited long enough: for half of the time-out, and another worker goes on with
// the lane; for all of it, and its batch has failed. (go-redis may hold it for as long as its own time-outs and retries
// say.) So those who came while the batch was in flight have half of the time-out left for one of their own. When the process
// is so busy that the reply may be there and nobody has had time to look, the batch gets a little longer.
func (l *lane) overdue(w *worker) {
	starved := gather.Starved()
	l.mu.Lock()
	now := time.Now()
	switch {
	case !w.busy:
		w.fires = time.Time{}
	case now.Before(w.detachAt): // of a later batch than the one for which the timer was set
		w.setTimerLocked(now, w.detachAt)
	default:
		l.detachLocked(w)
		if now.Before(w.deadline) {
			w.setTimerLocked(now, w.deadline)
			break
		}
		if starved && w.reprieves > 0 {
			w.reprieves--
			w.setTimerLocked(now, now.Add(l.r.timeout/gather.Reprieves))
			break
		}
		w.givenUp = true
		l.mu.Unlock()
		l.giveUp(w)
		return
	}
	l.mu.Unlock()
}

func (l *lane) detachLocked(w *worker) {
	if l.worker != w {
		return
	}
	w.detached, l.worker = true, nil
	if len(l.order) > 0 && !l.closed {
		l.wakeLocked()
	}
}

func (l *lane) giveUp(w *worker) {
	w.cancel()
	verdict := ErrTimeout
	if w.deadline.Sub(w.sent) < l.r.timeout/4 {
		verdict = context.Canceled // says nothing of Redis: the reads had used up their time waiting for their turn
	}
	w.permit.Done(verdict)
	for _, read := range w.reads {
		read.Err = l.r.noAnswer()
	}
	finish(w.reads)
}

// retire takes an idle worker off the lane, and reports whether it was still idle.
func (l *lane) retire(w *worker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.idle {
		return false
	}
	l.worker = nil
	return true
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, read := range l.pending {
		read.Err = ErrClosed
		close(read.done)
	}
	clear(l.pending)
	l.order = nil
	if l.worker != nil {
		l.worker.stopLocked()
	}
}

func finish(reads []*Read) {
	for _, read := range reads {
		close(read.done)
	}
}
