package scenario

import (
	"context"
	"errors"
	"time"
)

// scaleIdle have ever more instances do nothing, after they have waited for a key.
func scaleIdle() Scenario {
	s := Scenario{
		Name: "scale-idle",
		About: "Instances do nothing, less than a minute after they waited for a key: each sends itself a message through Redis every " +
			"few seconds, to see that its subscription lives. Requests and processor time by second.",
		Metrics: []Metric{
			{Name: "requests", Unit: "/s", Better: Lower},
			{Name: "server CPU", Unit: "ms", Better: Lower},
			{Name: "client CPU", Unit: "ms", Better: Lower},
		},
	}
	for _, n := range []int{100, 1000, 3000} {
		s.Cases = append(s.Cases, Case{
			Name:   thousands(n) + " guards",
			Params: map[string]float64{"guards": float64(n)},
			Entries: checked(
				func(ctx context.Context, e Env) (Figures, error) { return runIdle(ctx, e, n) },
				func(c *costs) Figures {
					probes := float64(n) / probePeriod.Seconds()
					return Figures{"requests": probes, "server CPU": (probes*c.probe + c.idle) / 1000}
				}),
		})
	}
	return s
}

// probePeriod is how often an instance sends itself a message: a watchdog that looks every second for a silence of more
// than two finds one at every third look, as the message came a little after the look.
const probePeriod = 3 * time.Second

func runIdle(ctx context.Context, e Env, n int) (_ Figures, err error) {
	f, err := openFleet(e.Redis, n, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.warmUp(ctx, 1); err != nil {
		return nil, err
	}
	if !pause(ctx, probePeriod) { // until it is as it will stay
		return nil, ctx.Err()
	}
	f.idleServer, f.idleClient = 0, 0 // idleness is what is to be measured
	before, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	const periods = 2
	if !pause(ctx, periods*probePeriod) {
		return nil, ctx.Err()
	}
	after, err := f.look(ctx)
	did, seconds := f.since(before, after), (periods * probePeriod).Seconds()
	return Figures{
		"requests":   float64(did.spent.Requests) / seconds,
		"server CPU": millis(did.spent.CPU) / seconds,
		"client CPU": millis(did.client) / seconds,
	}, err
}
