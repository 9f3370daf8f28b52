// Package testenv connects the Guards of a test with the environment that cacheguardtest made for it: they follow its
// clock, report their loads, and say when they are busy.
//
// The environment travels in the Limiter of the test's Redis client. So every Guard on that client is part of it, also
// one that the code under test makes, and nothing about it is global or public.
package testenv

import (
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/run/clock"
)

// Env is the environment of a test. The Limiter of its client is one.
type Env interface {
	Clock() clock.Clock

	// Loaded counts a load of the key.
	Loaded(key string)

	// Join adds a Guard, until leave is called.
	Join(g *Guard) (leave func())

	// Check returns why a value of the key, a *V to be stored, does not come back from its Codec as it was; nil: it
	// does.
	Check(key string, c protocol.Codec, value any) error

	// HandOut returns what the caller of a Get gets, a *V, in the place of a value that others may have; shown: a Judge
	// has seen that itself.
	HandOut(key string, c protocol.Codec, value any, shown bool) any
}

// Guard is what an environment needs of a Guard.
type Guard struct {
	Storing   func() int    // loads whose callers have the value already
	Working   func() int    // loads, waits for them, and comparisons, also while they wait for the clock
	Listening func() bool   // it hears of invalidations, if it has to
	Recovered func() bool   // it asks Redis again after an outage, and what that kept from Redis is there
	Leases    *lease.Keeper // of the client
}

// Of is the environment of a client; nil if it is not a test's.
func Of(rdb any) Env {
	env, _ := goredis.Limiter(rdb).(Env)
	return env
}
