package scale

import (
	"context"
	"runtime"

	"github.com/cacheguard/go/bench/internal/scenario"
)

// The model predicts what a fleet does from what one of each thing costs: see bench/SCALE.md.

// Commands, those inside scripts included.
const (
	commandsOfWaiter = 9 // MGET; acquire: EVALSHA, EXISTS, GET, TIME, HMGET, HSET; GET of the epoch; and the PUBLISH to it
	commandsOfLeader = 6 // MGET; acquire: EVALSHA, EXISTS, TIME, HSET, PEXPIRE
	commandsOfFill   = 5 // EVALSHA, HGETALL, TIME, SET, DEL
)

// wave predicts what happens when all instances, with that many callers each, wait for one key. Inboxes is how many of
// them have to be told.
func (c *costs) wave(instances, inboxes, callers int) scenario.Figures {
	each := c.at(inboxes + 1) // caches are filled by connections, and those on one client have few
	n, told, more := float64(instances), float64(inboxes), float64(callers-1)
	f := scenario.Figures{
		"loads":      1,
		"requests":   3 * n, // the leader's third is fill
		"commands":   (n-1)*(commandsOfWaiter-1) + told + commandsOfLeader + commandsOfFill,
		"server CPU": c.lone + (n-1)*(each.get+each.acquire) + told*(each.publish+each.write),
		"waiting":    (each.waiter + c.follower*more) / scenario.Kibibyte,
		"lease":      (c.lease + each.inbox*told) / scenario.Kibibyte,
	}
	if inboxes != instances-1 { // some share a client, and the model does not say who answers when
		f["waiting"] = c.sharedWaiter / scenario.Kibibyte
		return f
	}
	usual, best := c.answers(each, told, more, timing.ofUsual), c.answers(each, told, more, timing.ofBest)
	f["answer p50"], f["answer p99"], f["answer last"], f["at best"] = usual(0.5), usual(0.99), usual(1), best(1)
	return f
}

func (t timing) ofUsual() float64 { return t.usual }
func (t timing) ofBest() float64  { return t.best }

// answers predicts by when so large a share of the callers has been answered, in milliseconds.
func (c *costs) answers(each crowding, told, more float64, of func(timing) float64) func(share float64) float64 {
	first := of(c.alone) + told*each.publish // nobody is told before the script has ended
	all := told*each.receiver() + more*of(c.caller)
	return func(share float64) float64 { return (first + share*all) / 1000 }
}

// receiver is the time from one instance's answer to the next one's. The server writes on one processor; its writes and
// the instances' work share those there are, since both are on one machine.
func (each crowding) receiver() float64 {
	return max(each.write, (each.write+each.waking)/float64(runtime.GOMAXPROCS(0)))
}

// figures returns what the report of a wave shows.
func (m *measured) figures(instances float64) scenario.Figures {
	return scenario.Figures{
		"loads": m.loads, "requests": m.requests, "commands": m.commands,
		"server CPU": m.joiningServer + m.wakingServer,
		"answer p50": m.p50 / 1000, "answer p99": m.p99 / 1000, "answer last": m.last / 1000,
		"at best": m.best / 1000,
		"waiting": m.waiting / instances / scenario.Kibibyte,
		"lease":   m.lease / scenario.Kibibyte,
	}
}

// waveMetrics are the metrics of a wave, and more.
func waveMetrics(more ...scenario.Metric) []scenario.Metric {
	return append([]scenario.Metric{
		{Name: "loads", Better: scenario.Lower},
		{Name: "requests", Better: scenario.Lower},
		{Name: "commands", Better: scenario.Lower},
		{Name: "server CPU", Unit: "µs", Better: scenario.Lower},
		{Name: "answer p50", Unit: "ms", Better: scenario.Lower},
		{Name: "answer p99", Unit: "ms", Better: scenario.Lower},
		{Name: "answer last", Unit: "ms", Better: scenario.Lower},
		{Name: "at best", Unit: "ms", Better: scenario.Lower},
	}, more...)
}

// The rows of a scaling scenario.
const (
	IsMeasured  = "measured"
	IsPredicted = "predicted"
)

// checked makes the two rows of a case: what is measured, and what the model predicts from costs that are measured in the
// case's first round.
func checked(run func(context.Context, scenario.Env) (scenario.Figures, error), predict func(*costs) scenario.Figures) []scenario.Entry {
	var c *costs
	return []scenario.Entry{
		{Name: IsMeasured, Ours: true, Run: run},
		{Name: IsPredicted, Ours: true, Run: func(ctx context.Context, e scenario.Env) (_ scenario.Figures, err error) {
			if c == nil {
				if c, err = price(ctx, e); err != nil {
					return nil, err
				}
			}
			return predict(c), nil
		}},
	}
}
