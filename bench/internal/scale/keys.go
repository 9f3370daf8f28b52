package scale

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/cacheguard"
)

const readers = 64 // who read at once

// manyKeys have one instance store ever more keys, and read them.
func manyKeys() scenario.Scenario {
	s := scenario.Scenario{
		Name: "scale-keys",
		About: "One instance loads keys that nobody has, 500 with each GetMany, and then 64 callers read any of them, each again as " +
			"soon as it has been answered. Values have 100 bytes. Bytes at the server are by key, here are all that this process needs " +
			"more. The prediction is what a tenth of the keys takes, " +
			"and for the processor time of a Get as much more as a tenth of those takes less.",
		Metrics: []scenario.Metric{
			{Name: "requests to load", Better: scenario.Lower},
			{Name: "server CPU to load", Unit: "µs", Better: scenario.Lower},
			{Name: "requests to get", Better: scenario.Lower},
			{Name: "server CPU to get", Unit: "µs", Better: scenario.Lower},
			{Name: "at the server", Unit: "B", Better: scenario.Lower},
			{Name: "here", Unit: "KiB", Better: scenario.Lower},
		},
	}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		s.Cases = append(s.Cases, scenario.Case{
			Name:   scenario.Thousands(n) + " keys",
			Params: map[string]float64{"keys": float64(n)},
			Smoke:  n == 10_000,
			Rounds: max(1, 300_000/n), // the million takes minutes
			Entries: []scenario.Entry{
				{Name: IsMeasured, Ours: true, Run: func(ctx context.Context, e scenario.Env) (scenario.Figures, error) { return runKeys(ctx, e, n) }},
				{Name: IsPredicted, Ours: true, Run: func(ctx context.Context, e scenario.Env) (scenario.Figures, error) { return predictKeys(ctx, e, n) }},
			},
		})
	}
	return s
}

// predictKeys says what n keys take, from what a tenth and a hundredth of them does.
func predictKeys(ctx context.Context, e scenario.Env, n int) (scenario.Figures, error) {
	const get = "server CPU to get"
	few, err := runKeys(ctx, e, n/100)
	if err != nil {
		return nil, err
	}
	many, err := runKeys(ctx, e, n/10)
	if err != nil {
		return nil, err
	}
	many[get] += max(many[get]-few[get], 0)
	delete(many, "here") // does not depend on them
	return many, nil
}

func runKeys(ctx context.Context, e scenario.Env, n int) (_ scenario.Figures, err error) {
	f, err := openFleet(e.Redis, 1, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, f.close(), e.Redis.Remove(context.WithoutCancel(ctx), rivals.Prefix))
	}()
	prefix := scenario.NewKey()
	if err := f.hit(ctx, prefix+"warm", 1, 50*time.Millisecond, nil); err != nil {
		return nil, err
	}
	was, err := stand(ctx, e.Redis)
	if err != nil {
		return nil, err
	}
	before, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.fill(ctx, prefix, n); err != nil {
		return nil, err
	}
	filled, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	is, err := stand(ctx, e.Redis)
	if err != nil {
		return nil, err
	}
	start, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	var gets atomic.Int64
	if err := f.hit(ctx, prefix, n, e.For, &gets); err != nil {
		return nil, err
	}
	end, err := f.look(ctx)
	load, get, keys := f.since(before, filled).spent, f.since(start, end).spent, float64(n)
	return scenario.Figures{
		"requests to load": float64(load.Requests) / keys, "server CPU to load": scenario.Micros(load.CPU) / keys,
		"requests to get":   float64(get.Requests) / float64(gets.Load()),
		"server CPU to get": scenario.Micros(get.CPU) / float64(gets.Load()),
		"at the server":     (is.data - was.data) / keys, "here": (is.here - was.here) / scenario.Kibibyte,
	}, err
}

func keyOf(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// fill loads n keys. It may take longer than a call may, so ctx alone bounds it.
func (f *fleet) fill(ctx context.Context, prefix string, n int) error {
	const batch, workers = 500, 4
	var next atomic.Int64
	var filling errgroup.Group
	for range workers {
		filling.Go(func() error { // owner: fill; stop: all is loaded, or ctx; joined below
			for from := int(next.Add(batch)) - batch; from < n; from = int(next.Add(batch)) - batch {
				keys := make([]string, 0, batch)
				for i := from; i < min(from+batch, n); i++ {
					keys = append(keys, keyOf(prefix, i))
				}
				_, err := cacheguard.GetMany(ctx, f.guards[0], keys, loadMany)
				if one, ok := errors.AsType[*cacheguard.KeyError](err); ok {
					return one // of many alike
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return filling.Wait()
}

func loadMany(_ context.Context, keys []string) (map[string][]byte, error) {
	values := make(map[string][]byte, len(keys))
	for _, key := range keys {
		values[key] = scenario.ValueOf(key, 100)
	}
	return values, nil
}

// hit lets 64 callers read for d, and counts how often they did.
func (f *fleet) hit(ctx context.Context, prefix string, n int, d time.Duration, gets *atomic.Int64) error {
	var over atomic.Bool
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	return scenario.Together(ctx, readers, func(ctx context.Context, _ int) error {
		count := int64(0)
		for ; !over.Load(); count++ {
			key := keyOf(prefix, rand.IntN(n))
			got, err := cacheguard.Get(ctx, f.guards[0], key, func(context.Context) ([]byte, error) { return scenario.ValueOf(key, 100), nil })
			if err := scenario.Check(key, got, scenario.ValueOf(key, 100), err); err != nil {
				return err
			}
		}
		if gets != nil {
			gets.Add(count)
		}
		return nil
	})
}
