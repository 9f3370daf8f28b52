package cacheguard

import (
	"bytes"
	"context"
	"reflect"
	"time"

	"github.com/cacheguard/go/internal/cache/fidelity"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/testenv"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/observe"
)

// rehearsed returns the Config in the environment of a test; nil: there is none. Settings that would make a test depend on luck or on
// the speed of the machine are off or long, unless the test sets them.
func (c Config) rehearsed(env *testenv.Env) Config {
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
	c.clock = env.Clock.Clock()
	told := c.Hooks.OnLoad
	c.Hooks.OnLoad = func(key string, took time.Duration, err error) {
		env.Loaded(key)
		if told != nil {
			told(key, took, err)
		}
	}
	return c
}

func init() {
	observe.Register((*Guard).observed)
	testenv.ClockOf = func(guard any) (c clock.Clock) {
		if g, ok := guard.(*Guard); ok {
			c = g.cfg.clock
		}
		return c
	}
}

// handOut returns the value that the caller of a test gets: a copy of its own, unless one would differ, or a Judge has
// seen the value itself. The environment looks at it again at its end.
func handOut[V any](g *Guard, spec *loadSpec[V], key string, v V, err error) V {
	if _, immutable := any(v).(string); immutable || err != nil {
		return v
	}
	p := spec.policy
	var shape protocol.ShapeOf[V]
	what, payload, refused := shape.Encode(p.codec, &v)
	again := func() *V {
		back, err := shape.Decode(p.codec, protocol.Entry{Kind: what, Payload: bytes.Clone(payload)})
		if err != nil {
			return nil
		}
		return valueOf[V](back)
	}
	was, mine := again(), again()
	if refused != nil || was == nil || mine == nil {
		return v
	}
	if _, differs := fidelity.Difference(&v, was, p.codec.Marshal); differs != "" {
		return v
	}
	if spec.judge != nil || !reflect.DeepEqual(v, *mine) {
		mine = &v
	}
	g.rehearsal.HandedOut(key, func() (path, what string) { return fidelity.Difference(was, mine, p.codec.Marshal) })
	return *mine
}

// rehearse makes the Guard a part of a test's environment until it is closed.
func rehearse(g *Guard, env *testenv.Env) {
	g.rehearsal = env
	leaveEnv := env.Join(&testenv.Guard{
		Storing: func() int { return g.flights.Count(nil).Published },
		Working: func() int { return g.flights.Count(nil).Running + int(g.verifier.Running.Load()) },
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
