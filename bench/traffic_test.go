package bench

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

const (
	visitors     = 200
	pace         = 100 * time.Millisecond // of one visitor; 2,000 Gets a second are a small part of what the machine can do
	trafficTTL   = time.Second
	trafficStale = time.Minute
)

// traffic is an open loop of Gets: each visitor asks for one of the keys on schedule, answered or not. In a closed loop, nobody asks while
// everybody waits, and so waiting is not counted. Here it is.
type traffic struct {
	guard *cacheguard.Guard
	db    *slowDB
	keys  []string

	stoodStill time.Duration // the longest time that the process did nothing, not even look at its clock

	hung sync.Once
	seen bytes.Buffer // the goroutines when a Get had taken much too long

	mu     sync.Mutex
	visits []*visit
}

// visit is one Get of the traffic.
type visit struct {
	key     string
	due     time.Time // by the schedule
	began   time.Time // a little later, as timers are
	ended   time.Time
	outcome cacheguard.Outcome
	err     error
}

func (v *visit) took() time.Duration { return v.ended.Sub(v.due) }

type visitKey struct{}

// newTraffic makes an instance of a service and fills its cache.
func newTraffic(b *testing.B, rdb cacheguard.Redis, name string, keys int, cfg cacheguard.Config) *traffic {
	b.Helper()
	cfg.Observers = []cacheguard.Observer{cacheguard.On(cacheguard.EventGet, func(ctx context.Context, e cacheguard.Event) {
		if v, ok := ctx.Value(visitKey{}).(*visit); ok {
			v.outcome = e.Outcome
		}
	})}
	name += ":" + crand.Text() // keys that nobody has
	t := &traffic{guard: newGuard(b, rdb, cfg).Guard, db: newSlowDB()}
	for i := range keys {
		t.keys = append(t.keys, fmt.Sprintf("traffic:%s:%d", name, i))
	}
	err := scenario.Together(b.Context(), keys, func(ctx context.Context, i int) error {
		_, err := cacheguard.Get(ctx, t.guard, t.keys[i], t.db.loader(t.keys[i]))
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// run lets the visitors ask until ctx ends, and returns when all have their answers and the service has ended, with the
// loads that nobody waits for.
func (t *traffic) run(ctx context.Context) {
	begin := time.Now()
	answered := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() { t.stoodStill = longestPause(answered) }) // owner: run; stop: answered; joined below
	var all sync.WaitGroup
	for i := range visitors {
		all.Go(func() { // owner: run; stop: ctx; joined below
			for due := begin.Add(pace * time.Duration(i) / visitors); until(ctx, due); due = due.Add(pace) {
				all.Go(func() { t.visit(due) }) // as above; tooLong
			}
		})
	}
	all.Wait()
	close(answered)
	clock.Wait()
	_ = t.guard.Close()
}

// longestPause is how late a timer was at most, until the channel was closed.
func longestPause(end <-chan struct{}) (longest time.Duration) {
	const period = 20 * time.Millisecond
	tick := time.NewTimer(period)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
		case <-end:
			return longest
		}
		now := time.Now()
		longest, last = max(longest, now.Sub(last)-period), now
		tick.Reset(period)
	}
}

// until waits for a moment, and reports whether it came before ctx ended.
func until(ctx context.Context, moment time.Time) bool {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (t *traffic) visit(due time.Time) {
	v := &visit{key: t.keys[rand.N(len(t.keys))], due: due}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), visitKey{}, v), tooLong)
	defer cancel()
	look := time.AfterFunc(tooLong/2, func() {
		t.hung.Do(func() { _ = pprof.Lookup("goroutine").WriteTo(&t.seen, 1) }) // a buffer takes all
	})
	defer look.Stop()
	v.began = time.Now()
	got, err := cacheguard.Get(ctx, t.guard, v.key, t.db.loader(v.key))
	v.ended = time.Now()
	v.err = scenario.Check(v.key, got, t.db.value(v.key), err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visits = append(t.visits, v)
}

// requireAnswers fails the benchmark if a Get failed. It says whether the machine, and not the Gets, may have been why.
func (t *traffic) requireAnswers(b *testing.B) {
	b.Helper()
	var failed []*visit
	for _, v := range t.visits {
		if v.err != nil {
			failed = append(failed, v)
		}
	}
	if len(failed) > 0 {
		v := failed[0]
		t.hung.Do(func() {}) // nobody writes to seen any more
		b.Fatalf("%d of %d Gets failed, that of %s after %v: %v (the process stood still for %v at most)\n%s",
			len(failed), len(t.visits), v.key, v.took(), v.err, t.stoodStill, &t.seen)
	}
}

// times are how long the Gets took, in order, from when they were due and from when they began.
func (t *traffic) times() (due, began []time.Duration) {
	for _, v := range t.visits {
		due, began = append(due, v.took()), append(began, v.ended.Sub(v.began))
	}
	slices.Sort(due)
	slices.Sort(began)
	return due, began
}
