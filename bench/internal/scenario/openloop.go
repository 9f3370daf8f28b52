package scenario

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// openLoop asks on schedule, perSecond times a second for so long, whether or not it has been answered, and waits for all
// answers. What a closed loop does not notice, that nobody asks while everybody waits, counts here: an answer takes the time
// from when it was due, timers' lateness included, which is the same for all.
type openLoop struct {
	perSecond int
	length    time.Duration
	ask       func(ctx context.Context, i int) error

	took   *times
	failed atomic.Int64
	slow   atomic.Int64  // took longer than patience
	first  atomic.Value  // one of the errors
	late   time.Duration // patience
}

func (l *openLoop) run(ctx context.Context) {
	l.took = newTimes()
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for i := range int(l.length.Seconds() * float64(l.perSecond)) {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(l.perSecond))
		if wait := time.Until(due); wait > 0 && !pause(ctx, wait) {
			return
		}
		all.Go(func() { l.one(ctx, i, due) }) // owner: run; stop: tooLong; joined above
	}
}

func (l *openLoop) one(ctx context.Context, i int, due time.Time) {
	ctx, cancel := context.WithTimeout(ctx, tooLong)
	defer cancel()
	err := l.ask(ctx, i)
	took := time.Since(due)
	l.took.add(took)
	if took > l.late {
		l.slow.Add(1)
	}
	if err != nil {
		l.failed.Add(1)
		l.first.CompareAndSwap(nil, failure{err})
	}
}

// failure makes errors of all types one type, as atomic.Value wants it.
type failure struct{ error }

// err is one of the errors.
func (l *openLoop) err() error {
	if f, ok := l.first.Load().(failure); ok {
		return f.error
	}
	return nil
}
