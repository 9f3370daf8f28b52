package scenario

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/testing/alarm"
)

// openLoop asks on schedule, perSecond times a second for so long and at least once, whether or not it has been answered, and waits for all
// answers. What a closed loop does not notice, that nobody asks while everybody waits, counts here: an answer takes the time
// from when it was due, an alarm's lateness included, which is some tens of microseconds for all.
type openLoop struct {
	perSecond int
	random    bool // as visitors come who know nothing of each other (Poisson), and not one every so often
	length    time.Duration
	bubble    bool // of testing/synctest, whose time passes while everybody sleeps; an alarm's does not
	ask       func(ctx context.Context, i int) error

	took   *times        // nil: new ones
	last   time.Duration // when the last one came
	failed atomic.Int64
	slow   atomic.Int64  // took longer than patience
	first  atomic.Value  // one of the errors
	late   time.Duration // patience
}

func (l *openLoop) run(ctx context.Context) {
	if l.took == nil {
		l.took = newTimes()
	}
	sleep, stop, err := l.clock(ctx)
	if err != nil {
		l.fail(err)
		return
	}
	defer stop()
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for i := 0; ; i++ {
		after := l.after(i)
		if after >= l.length && i > 0 || sleep(began.Add(after)) != nil || ctx.Err() != nil {
			return
		}
		all.Go(func() { l.one(ctx, i, began.Add(after)) }) // owner: run; stop: TooLong; joined above
	}
}

// clock returns what sleeps until a moment, or until ctx ends.
func (l *openLoop) clock(ctx context.Context) (sleep func(time.Time) error, stop func(), err error) {
	if l.bubble {
		return func(due time.Time) error { Pause(ctx, time.Until(due)); return ctx.Err() }, func() {}, nil
	}
	clock, err := alarm.New()
	if err != nil {
		return nil, nil, err
	}
	unhook := context.AfterFunc(ctx, func() { _ = clock.Close() })
	return clock.Sleep, func() { unhook(); _ = clock.Close() }, nil
}

// after is when the i-th comes, from the beginning.
func (l *openLoop) after(i int) time.Duration {
	gap := time.Second / time.Duration(l.perSecond)
	if !l.random {
		return time.Duration(i) * gap
	}
	l.last += time.Duration(rand.ExpFloat64() * float64(gap))
	return l.last
}

func (l *openLoop) one(ctx context.Context, i int, due time.Time) {
	ctx, cancel := context.WithTimeout(ctx, TooLong)
	defer cancel()
	err := l.ask(ctx, i)
	took := time.Since(due)
	l.took.add(took)
	if took > l.late {
		l.slow.Add(1)
	}
	if err != nil {
		l.fail(err)
	}
}

func (l *openLoop) fail(err error) {
	l.failed.Add(1)
	l.first.CompareAndSwap(nil, failure{err})
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
