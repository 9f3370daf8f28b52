package scale

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// sizes describes the fleets on which costs are measured.
type sizes struct{ few, many, callers, waves int }

// pricedSizes are smaller when there is only to be seen whether everything works.
func pricedSizes(e scenario.Env) sizes {
	const short = 50 * time.Millisecond
	if e.For < short {
		return sizes{few: 20, many: 100, callers: 100, waves: 3}
	}
	return sizes{few: 100, many: 1000, callers: 1000, waves: 9}
}

// price measures the costs.
func price(ctx context.Context, e scenario.Env) (c *costs, err error) {
	c = new(costs)
	n := pricedSizes(e)
	if err := c.priceOne(ctx, e.Redis, n.callers, n.waves); err != nil {
		return nil, err
	}
	if c.few, err = c.priceCrowd(ctx, e.Redis, n.few, n.waves); err != nil {
		return nil, err
	}
	if c.many, err = c.priceCrowd(ctx, e.Redis, n.many, n.waves); err != nil {
		return nil, err
	}
	return c, errors.Join(c.priceSharing(ctx, e.Redis, n.many/2, n.waves), c.priceProbe(ctx, e.Redis, 3*e.For))
}

// priceOne is about a single instance: what is spent on a load although nobody else wants it, and what its further
// callers cost.
func (c *costs) priceOne(ctx context.Context, redisServer *server.Server, callers, waves int) (err error) {
	f, err := openFleet(redisServer, 1, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	lone, err := f.measure(ctx, 1, 10*waves, 0)
	if err != nil {
		return err
	}
	c.alone, c.lease = timing{usual: lone.last, best: lone.best}, lone.lease
	c.lone = lone.joiningServer + lone.wakingServer
	c.fill, c.fillScript = lone.wakingServer, lone.wakingScript
	if c.rtt, err = f.roundTrip(ctx); err != nil {
		return err
	}
	crowd, err := f.measure(ctx, callers, waves, 0)
	if err != nil {
		return err
	}
	more := float64(callers - 1)
	c.caller = timing{usual: max(crowd.last-lone.last, 0) / more, best: max(crowd.best-lone.best, 0) / more}
	c.follower = (crowd.waiting - lone.waiting) / more
	return nil
}

// roundTrip is how long a GET takes.
func (f *fleet) roundTrip(ctx context.Context) (float64, error) {
	const times = 500
	var took []time.Duration
	for range times {
		sent := time.Now()
		if err := missing(f.clients[0].Get(ctx, scenario.NewKey()).Err()); err != nil {
			return 0, err
		}
		took = append(took, time.Since(sent))
	}
	return scenario.Micros(median(took)), nil
}

// priceCrowd is about what each of that many instances costs.
func (c *costs) priceCrowd(ctx context.Context, redisServer *server.Server, instances, waves int) (is crowding, err error) {
	was, err := stand(ctx, redisServer)
	if err != nil {
		return is, err
	}
	f, err := openFleet(redisServer, instances, false)
	if err != nil {
		return is, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	m, err := f.measure(ctx, 1, waves, 0)
	if err != nil {
		return is, err
	}
	get, err := f.gets(ctx, waves)
	all, waiting := float64(instances), float64(instances-1)
	publish := (m.wakingScript - c.fillScript) / waiting
	return crowding{
		instances:   instances,
		get:         get,
		acquire:     (m.joiningServer-(c.lone-c.fill))/waiting - get,
		publish:     publish,
		write:       (m.wakingServer-c.fill)/waiting - publish,
		asking:      m.joiningClient / all,
		waking:      m.wakingClient / all,
		guard:       (m.idle - was.here) / all,
		waiter:      m.waiting / all,
		connections: (m.connections - was.connections) / all,
		inbox:       (m.lease - c.lease) / waiting,
	}, err
}

// gets is what the server computes for each of the GETs that all clients send at once.
func (f *fleet) gets(ctx context.Context, waves int) (float64, error) {
	var all []float64
	for range waves {
		before, err := f.look(ctx)
		if err != nil {
			return 0, err
		}
		err = scenario.Together(ctx, len(f.clients), func(ctx context.Context, i int) error {
			return missing(f.clients[i].Get(ctx, scenario.NewKey()).Err())
		})
		if err != nil {
			return 0, err
		}
		after, err := f.look(ctx)
		if err != nil {
			return 0, err
		}
		all = append(all, scenario.Micros(f.since(before, after).spent.CPU)/float64(len(f.clients)))
	}
	return median(all), nil
}

// missing is nil if the error says that there is no such key.
func missing(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// priceSharing is about Guards on one client.
func (c *costs) priceSharing(ctx context.Context, redisServer *server.Server, guards, waves int) (err error) {
	was := here()
	f, err := openFleet(redisServer, guards, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	m, err := f.measure(ctx, 1, waves, 0)
	if err != nil {
		return err
	}
	c.sharing, c.sharedWaiter = (m.idle-was)/float64(guards), m.waiting/float64(guards)
	return nil
}

// priceProbe is about a message that a client sends itself, at a server that sleeps in between, and about that sleep.
func (c *costs) priceProbe(ctx context.Context, redisServer *server.Server, watched time.Duration) (err error) {
	const times, pace, frame = 200, 2 * time.Millisecond, "0:"
	f := &fleet{redis: redisServer}
	if err := errors.Join(f.priceLooks(ctx), f.priceTime(ctx, watched)); err != nil {
		return err
	}
	c.idle = scenario.Micros(f.idleServer)
	rdb := redis.NewClient(redisServer.Options())
	defer func() { err = errors.Join(err, rdb.Close()) }()
	channel := scenario.NewKey()
	sub := rdb.Subscribe(ctx, channel)
	defer func() { err = errors.Join(err, sub.Close()) }()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	before, err := f.look(ctx)
	if err != nil {
		return err
	}
	for range times {
		if err := rdb.Publish(ctx, channel, frame).Err(); err != nil {
			return err
		}
		if _, err := sub.ReceiveMessage(ctx); err != nil {
			return err
		}
		scenario.Pause(ctx, pace)
	}
	after, err := f.look(ctx)
	c.probe = scenario.Micros(f.since(before, after).spent.CPU) / times
	return err
}

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
