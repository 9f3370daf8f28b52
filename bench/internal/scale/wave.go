package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

// wave is what happened to one key that a whole fleet asked for at once, and whose load ended when all were waiting.
type wave struct {
	joining, waking phase // until all wait; from then to the last answer
	loads           int64
	answers         []time.Duration // from the end of the load, for each caller, the soonest first
}

// at is a percentile of the answers.
func (w *wave) at(percent int) time.Duration {
	return w.answers[(len(w.answers)-1)*percent/100]
}

// wave has that many callers of each instance ask for a new key. While all wait, it calls waiting, if there is one.
func (f *fleet) wave(ctx context.Context, callers int, waiting func(key string) error) (_ *wave, err error) {
	var loads, ended atomic.Int64
	key, began := scenario.NewKey(), time.Now()
	value, release := scenario.ValueOf(key, scenario.Kibibyte), make(chan struct{})
	load := func(ctx context.Context) ([]byte, error) {
		loads.Add(1)
		select {
		case <-release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		ended.CompareAndSwap(0, int64(time.Since(began)))
		return value, nil
	}
	answers := make([]time.Duration, callers*len(f.guards))
	if err := f.recall(ctx); err != nil {
		return nil, err
	}
	f.joins.Store(0)
	start, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	answered := make(chan error, 1)
	go func() { // owner: wave; stop: release or cancel; joined below
		answered <- scenario.Together(ctx, len(answers), func(ctx context.Context, i int) error {
			got, err := cacheguard.Get(ctx, f.guards[i/callers], key, load)
			answers[i] = time.Since(began)
			return scenario.Check(key, got, value, err)
		})
	}()
	joined, err := f.join(ctx, start, callers)
	if err == nil && waiting != nil {
		if err = waiting(key); err == nil {
			joined, err = f.look(ctx)
		}
	}
	if err != nil {
		cancel()
	}
	close(release)
	err = errors.Join(err, <-answered)
	cancel()
	if err != nil {
		return nil, err
	}
	end, err := f.look(context.WithoutCancel(ctx))
	answersAfter(answers, time.Duration(ended.Load()))
	return &wave{joining: f.since(start, joined), waking: f.since(joined, end), loads: loads.Load(), answers: answers}, err
}

// answersAfter sorts the answers, and counts them from the end of the load.
func answersAfter(answers []time.Duration, ended time.Duration) {
	for i := range answers {
		answers[i] = max(answers[i]-ended, 0)
	}
	slices.Sort(answers)
}

// join waits until every instance has asked for the lease, and every further caller has joined one who did.
func (f *fleet) join(ctx context.Context, start look, callers int) (look, error) {
	instances := len(f.guards)
	const longest = 64 * time.Millisecond // between looks, of which there are to be few
	rest := max(time.Millisecond, min(time.Duration(instances*callers)*5*time.Microsecond, longest))
	for began := time.Now(); ; rest = min(2*rest, longest) {
		now, err := f.look(ctx)
		if err != nil {
			return now, err
		}
		asked := now.usage.Commands["evalsha"] - start.usage.Commands["evalsha"]
		if asked >= int64(instances) && f.joins.Load() >= int64(instances*(callers-1)) {
			return now, nil
		}
		if time.Since(began) > scenario.TooLong || !scenario.Pause(ctx, rest) {
			return now, fmt.Errorf("%d of %d instances have asked for the lease", asked, instances)
		}
	}
}

// manyCallers have ever more callers of one instance wait for one key.
func manyCallers() scenario.Scenario {
	s := scenario.Scenario{
		Name: "scale-callers",
		About: "Callers of one instance ask at once for one key that nobody has, and all wait before its load ends. Answers are " +
			"timed from that end; at best is the last answer of the least disturbed stampede. Waiting is the memory (heap and stacks) of all who wait, their goroutines included.",
		Metrics: waveMetrics(scenario.Metric{Name: "waiting", Unit: "KiB", Better: scenario.Lower}),
	}
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		s.Cases = append(s.Cases, scenario.Case{
			Name:   scenario.Thousands(n) + " callers",
			Params: map[string]float64{"callers": float64(n)},
			Smoke:  n == 100,
			Entries: checked(
				func(ctx context.Context, e scenario.Env) (scenario.Figures, error) { return runCallers(ctx, e, n) },
				func(c *costs) scenario.Figures {
					f := c.wave(1, 0, n)
					delete(f, "lease")
					return f
				}),
		})
	}
	return s
}

func runCallers(ctx context.Context, e scenario.Env, n int) (_ scenario.Figures, err error) {
	f, err := openFleet(e.Redis, 1, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	m, err := f.measure(ctx, n, leastWaves, e.For)
	if err != nil {
		return nil, err
	}
	figures := m.figures(1)
	delete(figures, "lease")
	return figures, nil
}
