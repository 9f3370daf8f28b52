package scale

import (
	"context"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// unitCosts are what the predictions of the scaling scenarios are made of.
func unitCosts() scenario.Scenario {
	cost := func(name, unit string) scenario.Metric {
		return scenario.Metric{Name: name, Unit: unit, Better: scenario.Lower}
	}
	var c *costs // of this round: the rows are measured together
	row := func(name string, figures func() scenario.Figures) scenario.Entry {
		return scenario.Entry{Name: name, Ours: true, Run: func(ctx context.Context, e scenario.Env) (_ scenario.Figures, err error) {
			if name == alone || c == nil {
				if c, err = price(ctx, e); err != nil {
					return nil, err
				}
			}
			return figures(), nil
		}}
	}
	return scenario.Scenario{
		Name: "unit-costs",
		About: "What one of each thing costs, when it is alone, and when it is one of few (100) or of many (1,000) instances that do the " +
			"same at once. RTT, alone, caller: time from request to reply, from the end of a load to its caller's answer, from one caller's " +
			"answer to the next one's. Lone (GET, acquire and fill of a caller that comes alone), fill of that, probe, a second of idleness, GET, acquire, publish, write: the " +
			"server's processor time. Asking, waking: this process's. Then bytes: a guard, one that shares its client, more for " +
			"one that waits, for a further caller who waits; at the server an instance's connections, a lease, an inbox in it.",
		Metrics: []scenario.Metric{
			cost("RTT", "µs"), cost("alone", "µs"), cost("caller", "µs"), cost("lone", "µs"), cost("fill", "µs"), cost("probe", "µs"), cost("idle", "µs/s"),
			cost("GET", "µs"), cost("acquire", "µs"), cost("publish", "µs"), cost("write", "µs"),
			cost("asking", "µs"), cost("waking", "µs"),
			cost("guard", "B"), cost("sharing", "B"), cost("waiter", "B"), cost("follower", "B"),
			cost("connections", "B"), cost("lease", "B"), cost("inbox", "B"),
		},
		Cases: []scenario.Case{{
			Name: "one of each", // a smoke run has them in the predictions of the others
			Entries: []scenario.Entry{
				row(alone, func() scenario.Figures { return c.figures() }),
				row("of few", func() scenario.Figures { return c.few.figures() }),
				row("of many", func() scenario.Figures { return c.many.figures() }),
			},
		}},
	}
}

const alone = "alone"
