package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
)

// Sizes of the fleet that costs are measured on. A hash of more than 128 fields is a hash table, so there are more.
const (
	pricedInstances = 200
	pricedCallers   = 200
	pricedWaves     = 9
)

// price measures the costs.
func price(ctx context.Context, redisServer *server.Server) (*costs, error) {
	c := new(costs)
	for _, part := range []func(context.Context, *server.Server) error{c.priceOne, c.priceMany, c.priceSharing, c.priceProbe} {
		if err := part(ctx, redisServer); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// priceOne is about a single instance: what is spent on a load although nobody else wants it, and what its further
// callers cost.
func (c *costs) priceOne(ctx context.Context, redisServer *server.Server) (err error) {
	f, err := openFleet(redisServer, 1, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	lone, err := f.measure(ctx, 1, 3*pricedWaves, 0)
	if err != nil {
		return err
	}
	c.alone, c.fill, c.fillScript, c.lease = lone.last, lone.wakingServer, lone.wakingScript, lone.lease
	c.rtt, err = f.roundTrip(ctx)
	if err != nil {
		return err
	}
	crowd, err := f.measure(ctx, pricedCallers, pricedWaves, 0)
	if err != nil {
		return err
	}
	c.caller = max(crowd.last-lone.last, 0) / (pricedCallers - 1)
	c.follower = (crowd.waiting - lone.waiting) / (pricedCallers - 1)
	return nil
}

// roundTrip is how long a GET takes.
func (f *fleet) roundTrip(ctx context.Context) (float64, error) {
	const times = 500
	var took []time.Duration
	for range times {
		sent := time.Now()
		if err := missing(f.clients[0].Get(ctx, newKey()).Err()); err != nil {
			return 0, err
		}
		took = append(took, time.Since(sent))
	}
	return micros(median(took)), nil
}

// priceMany is about what each instance adds.
func (c *costs) priceMany(ctx context.Context, redisServer *server.Server) (err error) {
	was, err := stand(ctx, redisServer)
	if err != nil {
		return err
	}
	f, err := openFleet(redisServer, pricedInstances, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	m, err := f.measure(ctx, 1, pricedWaves, 0)
	if err != nil {
		return err
	}
	if c.get, err = f.gets(ctx); err != nil {
		return err
	}
	const waiting = pricedInstances - 1
	c.acquire = m.joiningServer/pricedInstances - c.get
	c.publish = (m.wakingScript - c.fillScript) / waiting
	c.write = (m.wakingServer-c.fill)/waiting - c.publish
	c.asking = m.joiningClient / pricedInstances
	c.waking = m.wakingClient / pricedInstances
	c.guard = (m.idle - was.here) / pricedInstances
	c.waiter = m.waiting / pricedInstances
	c.connections = (m.connections - was.connections) / pricedInstances
	c.inbox = (m.lease - c.lease) / waiting
	return nil
}

// gets is what the server computes for each of the GETs that all clients send at once.
func (f *fleet) gets(ctx context.Context) (float64, error) {
	var all []float64
	for range pricedWaves {
		before, err := f.look(ctx)
		if err != nil {
			return 0, err
		}
		err = Together(ctx, len(f.clients), func(ctx context.Context, i int) error {
			return missing(f.clients[i].Get(ctx, newKey()).Err())
		})
		if err != nil {
			return 0, err
		}
		after, err := f.look(ctx)
		if err != nil {
			return 0, err
		}
		all = append(all, micros(f.since(before, after).spent.CPU)/float64(len(f.clients)))
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
func (c *costs) priceSharing(ctx context.Context, redisServer *server.Server) (err error) {
	was := here()
	f, err := openFleet(redisServer, pricedInstances, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.warmUp(ctx, 1); err != nil {
		return err
	}
	c.sharing = (here() - was) / pricedInstances
	return nil
}

// priceProbe is about a message that a client publishes to itself.
func (c *costs) priceProbe(ctx context.Context, redisServer *server.Server) (err error) {
	const times, frame = 500, "0:"
	rdb := redis.NewClient(redisServer.Options())
	defer func() { err = errors.Join(err, rdb.Close()) }()
	channel := newKey()
	sub := rdb.Subscribe(ctx, channel)
	defer func() { err = errors.Join(err, sub.Close()) }()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	before, err := redisServer.Usage(ctx)
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
	}
	after, err := redisServer.Usage(ctx)
	c.probe = micros(after.Since(before).CPU) / times
	return err
}
