package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/bench/internal/report"
	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/distance"
	"github.com/cacheguard/go/internal/testing/rungs"
)

// atMost is how long one run of one rival may take.
const atMost = 2 * time.Minute

// runner runs cases, round by round.
type runner struct {
	options
	redis    *server.Server
	progress io.Writer
	proxies  map[time.Duration]*distance.Remote // by round trip
	rungs    rungs.Set
}

// choose keeps the cases and entries that the flags ask for.
func (o options) choose(all []scenario.Scenario) (chosen []scenario.Scenario) {
	for _, s := range all {
		var cases []scenario.Case
		for _, c := range s.Cases {
			if (o.smoke && !c.Smoke) || !o.scenarios.MatchString(s.Name+": "+c.Name) {
				continue
			}
			c.Entries = c.With(func(e scenario.Entry) bool { return o.rivals.MatchString(e.Name) }, o.smoke)
			cases = append(cases, c)
		}
		if s.Cases = cases; len(cases) > 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// run measures all there is to measure, until ctx ends. Failures are in the report and do not end the run; the error
// says that something did.
func (r *runner) run(ctx context.Context, all []scenario.Scenario, to *report.Report) error {
	failures := 0
	for _, s := range all {
		result := &report.Scenario{Name: s.Name, About: s.About, Metrics: s.Metrics}
		to.Scenarios = append(to.Scenarios, result)
		for _, c := range s.Cases {
			for _, trip := range r.roundTrips(c) {
				began := time.Now()
				rows, err := r.rounds(ctx, c, trip)
				if ctx.Err() != nil {
					return errors.New("interrupted")
				}
				if err != nil {
					return err
				}
				done := &report.Case{Name: c.Name, RoundTrip: trip, Params: c.Params, Rows: rows}
				result.Cases = append(result.Cases, done)
				failures += r.failed(rows)
				r.say("%s: %s: %.1f s\n", s.Name, done.Title(), time.Since(began).Seconds())
				if err := r.redis.Remove(ctx, rivals.Prefix); err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
	}
	if failures > 0 {
		return fmt.Errorf("%d failed", failures)
	}
	return nil
}

// failed says what has failed, and how much.
func (r *runner) failed(rows []*report.Row) (n int) {
	for _, row := range rows {
		if row.Error != "" {
			n++
			r.say("    %s failed: %s\n", row.Name, row.Error)
		}
	}
	return n
}

// roundTrips returns the round trips that the flags ask for, or else the case's own. A smoke run takes only the first.
func (o options) roundTrips(c scenario.Case) []time.Duration {
	trips := o.trips
	if len(trips) == 0 {
		trips = c.RoundTrips()
	}
	if o.smoke {
		trips = trips[:1]
	}
	return trips
}

// env is at so long a round trip from the server. All cases share the proxy, which close ends.
func (r *runner) env(trip time.Duration) (scenario.Env, error) {
	e := scenario.Env{Redis: r.redis, RoundTrip: trip, For: r.each, Rungs: &r.rungs}
	if trip == 0 {
		return e, nil
	}
	p := r.proxies[trip]
	if p == nil {
		o := r.redis.Options()
		if o.Network == "unix" {
			return e, errors.New("a Redis on a Unix socket cannot be put further away: use -rtt 0")
		}
		var err error
		if p, err = distance.Apart(o.Addr, trip); err != nil {
			return e, err
		}
		r.proxies[trip] = p
	}
	e.Through = p.Addr()
	return e, nil
}

func (r *runner) close() (err error) {
	r.rungs.End()
	for _, p := range r.proxies {
		err = errors.Join(err, p.Close())
	}
	return err
}

// rounds makes the entries take turns. Each round begins with another one, so that nobody always comes after the same.
func (r *runner) rounds(ctx context.Context, c scenario.Case, trip time.Duration) ([]*report.Row, error) {
	env, err := r.env(trip)
	if err != nil {
		return nil, err
	}
	rows := make([]*report.Row, len(c.Entries))
	for i, e := range c.Entries {
		rows[i] = &report.Row{Name: e.Name, Ours: e.Ours, Kind: e.Kind, Promise: e.Promise}
	}
	n := r.options.rounds
	if c.Rounds > 0 {
		n = min(n, c.Rounds)
	}
	for round := range n {
		for i := range c.Entries {
			i = (i + round) % len(c.Entries)
			if rows[i].Error != "" || ctx.Err() != nil {
				continue
			}
			figures, err := once(ctx, c.Entries[i], env)
			if err != nil {
				rows[i].Error = err.Error()
				continue
			}
			rows[i].Rounds = append(rows[i].Rounds, figures)
		}
	}
	return r.withoutMissing(rows), nil
}

// withoutMissing takes out whose servers are not there, with a line for each.
func (r *runner) withoutMissing(rows []*report.Row) []*report.Row {
	return slices.DeleteFunc(rows, func(row *report.Row) bool {
		missing := strings.HasPrefix(row.Error, scenario.ErrLeftOut.Error())
		if missing {
			r.say("    %s\n", row.Error)
		}
		return missing
	})
}

func once(ctx context.Context, e scenario.Entry, env scenario.Env) (scenario.Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	runtime.GC() // nobody pays for the garbage of others
	return e.Run(ctx, env)
}

func (r *runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, format, args...) // progress may get lost
}
