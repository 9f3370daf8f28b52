package cacheguard

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/testenv"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/watch/observe"
)

// rehearsed returns the Config in the environment of a test; nil: there is none. Settings that would make a test depend
// on luck or on the speed of the machine are off or long, unless the test sets them.
func (c Config) rehearsed(env testenv.Env) Config {
	if env == nil {
		return c
	}
	c.Replicas = 0 // the Redis of a test has none
	config.SetDefault(&c.Jitter, off)
	config.SetDefault(&c.RedisTimeout, 20*time.Second)
	config.SetDefault(&c.HedgeAfter, off)
	if c.Local.on() {
		config.SetDefault(&c.Local.MaxLag, off)
	}
	lease := time.Minute
	if c.UpdateTimeout > 0 { // which may not be shorter
		lease = max(min(lease, c.UpdateTimeout), defaultLeaseTTL)
	}
	config.SetDefault(&c.LeaseTTL, lease)
	c.clock = env.Clock()
	c.Observers = append(slices.Clip(c.Observers), ObserverFunc(func(_ context.Context, e Event) {
		if e.What == EventLoad {
			env.Loaded(e.Key)
		}
	}))
	return c
}

func init() {
	observe.Register((*Guard).observed)
	clock.Of = func(guard any) (c clock.Clock) {
		if g, ok := guard.(*Guard); ok {
			c = g.cfg.clock
		}
		return c
	}
}

// handOut returns the value that the caller of a test gets, which may be a copy of its own.
func handOut[V any](g *Guard, spec *loadSpec[V], key string, v V, err error) V {
	if err != nil {
		return v
	}
	return *valueOf[V](g.rehearsal.HandOut(key, spec.policy.codec, &v, spec.judge != nil))
}

// rehearse makes the Guard a part of a test's environment until it is closed.
func rehearse(g *Guard, env testenv.Env) {
	g.rehearsal = env
	leaveEnv := env.Join(&testenv.Guard{
		Storing: func() int { return g.flights.Count(nil).Published },
		Working: func() int { return g.flights.Count(nil).Running },
		Listening: func() bool {
			if g.local == nil {
				return true
			}
			g.inbox.Start()
			return g.inbox.Address() != ""
		},
		Recovered: func() bool { return allWell(g) },
		Leases:    g.keeper,
	})
	leave := g.leave
	g.leave = func() {
		leaveEnv()
		leave()
	}
}

// allWell asks Redis, and reports whether everything is as before the outage.
func allWell(g *Guard) bool {
	const anyKey = "recovered" // a test has one server, so there is one breaker
	if breaker := g.breakers.Breaker(0); breaker.IsOpen() {
		_, _ = g.link.Get(context.Background(), g.keys.ValueKey(anyKey)) // the breaker learns the result
		if breaker.IsOpen() {
			return false
		}
	}
	return g.writes.Pending() == 0
}
