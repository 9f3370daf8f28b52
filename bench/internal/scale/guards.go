package scale

import (
	"context"
	"errors"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// manyGuards have ever more instances wait for one key.
func manyGuards() scenario.Scenario {
	s := scenario.Scenario{
		Name: "scale-guards",
		About: "Instances, one caller each, ask at once for one key that nobody has, and all wait before its load ends. " +
			"Answers are timed from that end; at best is the last answer of the least disturbed stampede. Requests, commands and " +
			"server CPU are by stampede. Memory of this process (heap and stacks) and of the server: by instance that is idle but warm, more by instance that waits, and the whole lease.",
		Metrics: waveMetrics(
			scenario.Metric{Name: "guard", Unit: "KiB", Better: scenario.Lower},
			scenario.Metric{Name: "waiting", Unit: "KiB", Better: scenario.Lower},
			scenario.Metric{Name: "connections", Unit: "KiB", Better: scenario.Lower},
			scenario.Metric{Name: "lease", Unit: "KiB", Better: scenario.Lower},
		),
	}
	add := func(n int, shared bool) {
		name, inboxes := scenario.Thousands(n)+" guards, a client each", n-1
		if shared {
			name, inboxes = scenario.Thousands(n)+" guards on one client", 1
		}
		s.Cases = append(s.Cases, scenario.Case{
			Name:   name,
			Params: map[string]float64{"guards": float64(n), "inboxes": float64(inboxes)},
			Smoke:  n == 10,
			Entries: checked(
				func(ctx context.Context, e scenario.Env) (scenario.Figures, error) {
					return runGuards(ctx, e, n, shared)
				},
				func(c *costs) scenario.Figures {
					f, each := c.wave(n, inboxes, 1), c.at(n)
					f["guard"], f["connections"] = each.guard/scenario.Kibibyte, each.connections/scenario.Kibibyte
					if shared {
						f["guard"] = (each.guard + c.sharing*float64(n-1)) / float64(n) / scenario.Kibibyte
						delete(f, "connections") // as many as the pool has
					}
					return f
				}),
		})
	}
	for _, n := range []int{1, 10, 100, 1000, 3000} {
		add(n, false)
	}
	add(1000, true)
	return s
}

// leastWaves is how many waves are measured however long they take.
const leastWaves = 7

func runGuards(ctx context.Context, e scenario.Env, n int, shared bool) (_ scenario.Figures, err error) {
	was, err := stand(ctx, e.Redis)
	if err != nil {
		return nil, err
	}
	f, err := openFleet(e.Redis, n, shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	m, err := f.measure(ctx, 1, leastWaves, e.For)
	if err != nil {
		return nil, err
	}
	figures := m.figures(float64(n))
	if n > 1 { // one guard is less than what comes and goes anyway
		figures["guard"] = (m.idle - was.here) / float64(n) / scenario.Kibibyte
	}
	figures["connections"] = (m.connections - was.connections) / float64(n) / scenario.Kibibyte
	return figures, nil
}
