package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/cacheguard/go/bench/internal/report"
	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// atMost is how long one run of one rival may take.
const atMost = 2 * time.Minute

// runner runs cases, round by round.
type runner struct {
	options
	redis    *server.Server
	progress io.Writer
}

// choose keeps the cases and entries that the flags ask for.
func (o options) choose(all []scenario.Scenario) (chosen []scenario.Scenario) {
	for _, s := range all {
		var cases []scenario.Case
		for _, c := range s.Cases {
			if (o.smoke && !c.Smoke) || !o.scenarios.MatchString(s.Name+": "+c.Name) {
				continue
			}
			c.Entries = o.take(c)
			cases = append(cases, c)
		}
		if s.Cases = cases; len(cases) > 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// take keeps our own and the chosen rivals, and one of them where a smoke run would take too long.
func (o options) take(c scenario.Case) (some []scenario.Entry) {
	left := len(c.Entries)
	if o.smoke && c.Slow {
		left = 1
	}
	for _, e := range c.Entries {
		if e.Ours || o.rivals.MatchString(e.Name) && left > 0 {
			some = append(some, e)
			if !e.Ours {
				left--
			}
		}
	}
	return some
}

// run measures all there is to measure, until ctx ends. What fails is in the report and does not end the run; the error
// says that something did.
func (r *runner) run(ctx context.Context, all []scenario.Scenario, to *report.Report) error {
	failures := 0
	for _, s := range all {
		result := &report.Scenario{Name: s.Name, About: s.About, Metrics: s.Metrics}
		to.Scenarios = append(to.Scenarios, result)
		for _, c := range s.Cases {
			began := time.Now()
			rows := r.rounds(ctx, c)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			result.Cases = append(result.Cases, &report.Case{Name: c.Name, Params: c.Params, Rows: rows})
			for _, row := range rows {
				if row.Error != "" {
					failures++
					r.say("    %s failed: %s\n", row.Name, row.Error)
				}
			}
			r.say("%s: %s: %.1f s\n", s.Name, c.Name, time.Since(began).Seconds())
			if err := r.redis.Remove(ctx, rivals.Prefix); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	if failures > 0 {
		return fmt.Errorf("%d failed", failures)
	}
	return nil
}

// rounds has the entries take turns. Each round begins with another one, so that nobody always comes after the same.
func (r *runner) rounds(ctx context.Context, c scenario.Case) []*report.Row {
	rows := make([]*report.Row, len(c.Entries))
	for i, e := range c.Entries {
		rows[i] = &report.Row{Name: e.Name, Ours: e.Ours, Kind: e.Kind}
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
			figures, err := r.once(ctx, c.Entries[i])
			if err != nil {
				rows[i].Error = err.Error()
				continue
			}
			rows[i].Rounds = append(rows[i].Rounds, figures)
		}
	}
	return rows
}

func (r *runner) once(ctx context.Context, e scenario.Entry) (scenario.Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	runtime.GC() // nobody pays for the garbage of others
	return e.Run(ctx, scenario.Env{Redis: r.redis, For: r.each})
}

func (r *runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, format, args...) // progress may get lost
}
