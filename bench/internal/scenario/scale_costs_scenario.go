package scenario

import (
	"context"
)

// unitCosts are what the predictions of the scaling scenarios are made of.
func unitCosts() Scenario {
	cost := func(name, unit string) Metric { return Metric{Name: name, Unit: unit, Better: Lower} }
	return Scenario{
		Name: "unit-costs",
		About: "What one of each thing costs, measured on 200 instances or 200 callers. Times on the network and from answer to " +
			"answer; processor time of the server; processor time of this process; memory of this process; memory of the server.",
		Metrics: []Metric{
			cost("RTT", "µs"), cost("alone", "µs"), cost("caller", "µs"),
			cost("GET", "µs"), cost("acquire", "µs"), cost("fill", "µs"), cost("publish", "µs"), cost("write", "µs"), cost("probe", "µs"),
			cost("asking", "µs"), cost("waking", "µs"),
			cost("guard", "B"), cost("sharing", "B"), cost("waiter", "B"), cost("follower", "B"),
			cost("connections", "B"), cost("lease", "B"), cost("inbox", "B"),
		},
		Cases: []Case{{
			Name: "one of each", Smoke: true,
			Entries: []Entry{{
				Name: "cacheguard", Ours: true,
				Run: func(ctx context.Context, e Env) (Figures, error) {
					c, err := price(ctx, e.Redis)
					if err != nil {
						return nil, err
					}
					return c.figures(), nil
				},
			}},
		}},
	}
}
