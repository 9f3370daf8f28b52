package scale

import (
	"context"
	"errors"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// idleGuards have ever more instances do nothing, after they have waited for a key.
func idleGuards() scenario.Scenario {
	s := scenario.Scenario{
		Name: "scale-idle",
		About: "Instances do nothing, less than a minute after they waited for a key: each sends itself a message through Redis every " +
			"few seconds, to see that its subscription lives. Requests and processor time by second.",
		Metrics: []scenario.Metric{
			{Name: "requests", Unit: "/s", Better: scenario.Lower},
			{Name: "server CPU", Unit: "ms", Better: scenario.Lower},
			{Name: "client CPU", Unit: "ms", Better: scenario.Lower},
		},
	}
	for _, n := range []int{100, 1000, 3000} {
		s.Cases = append(s.Cases, scenario.Case{
			Name:   scenario.Thousands(n) + " guards",
			Params: map[string]float64{"guards": float64(n)},
			Entries: checked(
				func(ctx context.Context, e scenario.Env) (scenario.Figures, error) { return runIdle(ctx, e, n) },
				func(c *costs) scenario.Figures {
					probes := float64(n) / probePeriod.Seconds()
					return scenario.Figures{"requests": probes, "server CPU": (probes*c.probe + c.idle) / 1000}
				}),
		})
	}
	return s
}

// probePeriod is how often an instance sends itself a message: a watchdog that looks every second for a silence of more
// than two finds one at every third look, as the message came a little after the look.
const probePeriod = 3 * time.Second

func runIdle(ctx context.Context, e scenario.Env, n int) (_ scenario.Figures, err error) {
	f, err := openFleet(e.Redis, n, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.warmUp(ctx, 1); err != nil {
		return nil, err
	}
	if !scenario.Pause(ctx, probePeriod) { // until it is as it will stay
		return nil, ctx.Err()
	}
	f.idleServer, f.idleClient = 0, 0 // idleness is what is to be measured
	before, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	const periods = 2
	if !scenario.Pause(ctx, periods*probePeriod) {
		return nil, ctx.Err()
	}
	after, err := f.look(ctx)
	did, seconds := f.since(before, after), (periods * probePeriod).Seconds()
	return scenario.Figures{
		"requests":   float64(did.spent.Requests) / seconds,
		"server CPU": scenario.Millis(did.spent.CPU) / seconds,
		"client CPU": scenario.Millis(did.client) / seconds,
	}, err
}
