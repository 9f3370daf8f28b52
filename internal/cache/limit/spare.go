package limit

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/flight"
)

// How long, more or less, a load waits until it has one of them look for a spare slot. All together look as often,
// however many they are: on a busy machine looking would cost more than it finds.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 50 * time.Millisecond
	pauseOfAll    = 2 * time.Millisecond
)

// queue has the loads that wait for a spare slot. Only who is woken looks for one.
type queue struct {
	mu  sync.Mutex
	all []*spareLoad // by Until
}

type spareLoad struct {
	Need

	woken chan struct{}
}

func byUntil(w *spareLoad, until time.Time) int { return w.Until.Compare(until) }

func (q *queue) enter(w *spareLoad) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, _ := slices.BinarySearchFunc(q.all, w.Until, byUntil)
	q.all = slices.Insert(q.all, i, w)
}

// leave reports whether the load was woken since it looked: then it wakes another one.
func (q *queue) leave(w *spareLoad) (woken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, _ := slices.BinarySearchFunc(q.all, w.Until, byUntil)
	for q.all[i] != w {
		i++
	}
	q.all = slices.Delete(q.all, i, i+1)
	return len(w.woken) > 0
}

// wake has one look for a slot: of those whose Cache has one, the load that can use it for longest. If that is about to
// look, the next one does when a slot was freed.
func (q *queue) wake(freed bool) (waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range slices.Backward(q.all) {
		switch looks := len(w.woken) > 0; {
		case w.Kind != nil && w.Kind.Unused() == 0, looks && freed:
			continue
		case !looks:
			w.woken <- struct{}{}
		}
		break
	}
	return len(q.all)
}

// takeSpare looks now and again, and when a load has ended. It does not queue for slots: a load in the queue of its
// Cache would keep that slot from callers while it waits for one of MaxLoads.
func (l *Loads) takeSpare(ctx context.Context, n Need) (s Slot) {
	w := &spareLoad{n, make(chan struct{}, 1)}
	l.spare.enter(w)
	defer func() {
		if l.spare.leave(w) {
			l.spare.wake(true)
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	waiting, callers := l.spare.wake(false), flight.WaitersOf(ctx).Callers
	for pause := shortestPause; s.IsNone() && ctx.Err() == nil && callers() > 0; pause = min(2*pause, longestPause) {
		atMost := max(pause, time.Duration(waiting)*pauseOfAll)
		timer.Reset(atMost/2 + rand.N(atMost))
		select {
		case <-w.woken:
			s = l.Try(ctx, n)
		case <-timer.C:
			waiting = l.spare.wake(false)
		case <-ctx.Done():
		}
	}
	return s
}
