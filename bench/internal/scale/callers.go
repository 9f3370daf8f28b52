package scale

import (
	"context"
	"errors"

	"github.com/cacheguard/go/bench/internal/scenario"
)

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
