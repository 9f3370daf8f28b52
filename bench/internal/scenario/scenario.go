// Package scenario has what the rivals are measured with: plain functions, one file each, that need neither a test nor a
// benchmark around them. They count what can be counted (loads, requests, commands, the server's processor time), and
// measure times from when something was due or had happened, never from when a busy client came to ask.
//
// A run opens its own instances, warms them up, measures for about Env.For and closes them. Its caller repeats
// it, and takes turns between rivals, so that a slow moment of the machine is one for all.
package scenario

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/rungs"
)

// Scenario is a question, with the cases it is asked for.
type Scenario struct {
	Name    string
	About   string // what happens, and what the figures mean
	Metrics []Metric
	Cases   []Case
}

// Case is one choice of a scenario's parameters.
type Case struct {
	Name    string
	Params  map[string]float64 // the same, as numbers
	Smoke   bool               // it stands for its scenario: part of a smoke run, and of others also at a distance
	Slow    bool               // where one round is enough, it has our own and one rival only, since it takes a second or more for each
	Rounds  int                // at most; 0: as many as are asked for
	Away    []time.Duration    // round trips to Redis, unless others are asked for; nil: none, 0.3 and 1 ms for what Smoke has
	Entries []Entry
}

// RoundTrips returns the round trips that the case is for. A smoke run takes the first one.
func (c Case) RoundTrips() []time.Duration {
	switch {
	case c.Away != nil:
		return c.Away
	case c.Smoke:
		return []time.Duration{0, datacenter, time.Millisecond}
	}
	return []time.Duration{0}
}

// With returns our own entries and those of the rivals that are wanted, one of them if it must be quick and the case is slow.
func (c Case) With(wanted func(Entry) bool, quick bool) (some []Entry) {
	left := len(c.Entries)
	if quick && c.Slow {
		left = 1
	}
	for _, e := range c.Entries {
		if e.Ours || wanted(e) && left > 0 {
			some = append(some, e)
			if !e.Ours {
				left--
			}
		}
	}
	return some
}

// datacenter is the round trip between two machines of one.
const datacenter = 300 * time.Microsecond

// Entry is a participant.
type Entry struct {
	Name    string
	Ours    bool
	Kind    string // only entries of the same kind are compared
	Promise string // of how often a key is loaded that many ask for; empty: it is not about that
	Run     func(context.Context, Env) (Figures, error)
}

// Env is where and for how long to measure.
type Env struct {
	Redis     *server.Server
	RoundTrip time.Duration // to Redis, more than what the loopback interface takes
	Through   string        // the address of the proxy that makes it so; empty: there is none
	For       time.Duration // of what is timed; counts are taken at least once
	Rungs     *rungs.Set    // servers of locks that are started once; nil: each run starts its own
}

// Options returns the options of a client for what is measured.
func (e Env) Options() *redis.Options {
	o := e.Redis.Options()
	if e.Through != "" {
		o.Addr = e.Through
	}
	return o
}

// Metric is a figure of a scenario.
type Metric struct {
	Name   string
	Unit   string
	Better Better
	Main   bool // it is what rivals are compared by; one of a scenario
}

// Better is which side of a figure is the better one.
type Better string

// The sides.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
	Either Better = "" // neither: it explains others
)

// Figures are what one run found, by the names of metrics. Absent metrics do not apply.
type Figures map[string]float64

// All are the scenarios, in the order of the report.
func All() []Scenario {
	return []Scenario{
		stampedes(), hits(), arrivals(), lone(), loneMiss(), coldStart(), crowds(), storms(), steady(), written(),
		invalidation(), slowLoader(), slowRedis(), crash(), outage(),
		locks(), contests(), lockStorms(), readShares(), semaphores(), lockRungs(),
		pageStampedes(), pageHits(), pageLone(),
	}
}

// eachCache makes the entries of the libraries.
func eachCache(
	libs []rivals.CacheLibrary, run func(context.Context, Env, rivals.CacheLibrary) (Figures, error),
) []Entry {
	var entries []Entry
	for _, lib := range libs {
		entries = append(entries, Entry{
			Name: lib.Name, Ours: lib.Ours, Kind: string(lib.Kind), Promise: lib.Promise,
			Run: func(ctx context.Context, e Env) (Figures, error) { return run(ctx, e, lib) },
		})
	}
	return entries
}

// database is a slow source with that many connections.
type database struct {
	takes       time.Duration
	connections chan struct{} // one place each; nil: no limit

	loads   atomic.Int64
	running atomic.Int64
	most    atomic.Int64 // at once, waiting for a connection included
}

func newDatabase(takes time.Duration, connections int) *database {
	d := &database{takes: takes}
	if connections > 0 {
		d.connections = make(chan struct{}, connections)
	}
	return d
}

// load returns a loader of one value.
func (d *database) load(value []byte) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		d.loads.Add(1)
		now := d.running.Add(1)
		defer d.running.Add(-1)
		for most := d.most.Load(); now > most && !d.most.CompareAndSwap(most, now); {
			most = d.most.Load()
		}
		if d.connections != nil {
			d.connections <- struct{}{}
			defer func() { <-d.connections }()
		}
		if !Pause(ctx, d.takes) {
			return nil, context.Cause(ctx)
		}
		return value, nil
	}
}
