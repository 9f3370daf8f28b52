package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// hits have the callers of one instance read what is there, each as soon as it has been answered.
func hits() Scenario {
	s := Scenario{
		Name: "hits",
		About: "The callers of one instance read what is there, each again as soon as it has been answered. Zipf picks the " +
			"most wanted of the keys 15 % of the time. Requests, bytes on the wire (of requests and replies) and processor time are by Get; CPU is this process's. " +
			"Hits by core-second are those for a second of a processor, the process's and the server's together. " +
			"A library that takes a busy machine for a Redis that is down loads all the same.",
		Metrics: []Metric{
			{Name: "gets", Unit: "/s", Better: Higher, Main: true},
			{Name: "hits by core-second", Better: Higher},
			{Name: "loaded all the same", Unit: "%", Better: Lower},
			{Name: "allocations", Better: Lower},
			{Name: "requests", Better: Lower},
			{Name: "server CPU", Unit: "µs", Better: Lower},
			{Name: "CPU", Unit: "µs", Better: Lower},
			{Name: "wire", Unit: "B", Better: Lower},
		},
	}
	add := func(r reading) {
		main, rounds := r.callers == base.callers && r.bytes == base.bytes, 3
		if main {
			rounds = 0
		}
		near := []time.Duration{0}
		if r.bytes == base.bytes && !r.zipf {
			near = append(near, datacenter, time.Millisecond)
		}
		s.Cases = append(s.Cases, Case{
			Name:   r.String(),
			Params: map[string]float64{"keys": float64(r.keys), "callers": float64(r.callers), "bytes": float64(r.bytes)},
			Smoke:  main && !r.zipf, Slow: r.keys > 1,
			Rounds: rounds, Away: near,
			Entries: eachCache(slices.Concat(rivals.Caches, []rivals.CacheLibrary{rivals.OneSocket, rivals.AutoPipeline}), func(ctx context.Context, e Env, lib rivals.CacheLibrary) (Figures, error) {
				return r.run(ctx, e, lib)
			}),
		})
	}
	for _, which := range []reading{{keys: 1}, {keys: 10_000}, {keys: 10_000, zipf: true}} {
		for _, callers := range []int{64, 1, 8, 512} {
			r := which
			r.callers, r.bytes = callers, base.bytes
			add(r)
		}
	}
	for _, size := range []int{100, 16 * Kibibyte, 256 * Kibibyte} {
		add(reading{keys: 1, callers: base.callers, bytes: size})
		add(reading{keys: min(10_000, 32<<20/size), callers: base.callers, bytes: size})
	}
	return s
}

var base = reading{callers: 64, bytes: Kibibyte}

// reading says which callers read which keys.
type reading struct {
	keys, callers, bytes int
	zipf                 bool
}

// which says which keys are read.
func (r reading) which() string {
	switch {
	case r.zipf:
		return Thousands(r.keys) + " keys, zipf"
	case r.keys > 1:
		return Thousands(r.keys) + " keys"
	}
	return "1 key"
}

func (r reading) String() string {
	size := fmt.Sprint(r.bytes, " B")
	if r.bytes >= Kibibyte {
		size = fmt.Sprint(r.bytes/Kibibyte, " KiB")
	}
	return fmt.Sprintf("%s, %d callers, %s", r.which(), r.callers, size)
}

func (r reading) run(ctx context.Context, e Env, lib rivals.CacheLibrary) (_ Figures, err error) {
	keys, values := newKeys(r.keys, r.bytes)
	c, err := stocked(ctx, e, lib, keys, values)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var loads atomic.Int64
	loaders := make([]rivals.Loader, len(keys)) // made here, since a hit does not make any
	for i, v := range values {
		loaders[i] = func(context.Context) ([]byte, error) {
			loads.Add(1)
			return v, nil
		}
	}
	if _, err := r.read(ctx, c, keys, values, loaders, e.For/5); err != nil { // connections and caches of memory
		return nil, err
	}
	runtime.GC()
	loads.Store(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	was, err := e.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	began, used := time.Now(), ProcessTime()
	gets, err := r.read(ctx, c, keys, values, loaders, e.For)
	if err != nil {
		return nil, err
	}
	took, cpu := time.Since(began), ProcessTime()-used
	runtime.ReadMemStats(&after)
	now, err := e.Redis.Usage(ctx)
	spent := now.Since(was)
	return Figures{
		"gets":                gets / took.Seconds(),
		"loaded all the same": 100 * float64(loads.Load()) / gets,
		"allocations":         float64(after.Mallocs-before.Mallocs) / gets,
		"requests":            float64(spent.Requests) / gets,
		"server CPU":          Micros(spent.CPU) / gets,
		"CPU":                 Micros(cpu) / gets,
		"hits by core-second": gets / (cpu + spent.CPU).Seconds(),
		"wire":                float64(spent.Wire) / gets,
	}, err
}

// read lets the callers read for d, and returns how often they did.
func (r reading) read(
	ctx context.Context, c rivals.Cache, keys []string, values [][]byte, loaders []rivals.Loader, d time.Duration,
) (float64, error) {
	var over atomic.Bool
	timer := time.AfterFunc(d, func() { over.Store(true) })
	defer timer.Stop()
	gets := make([]int, r.callers)
	err := Together(ctx, r.callers, func(ctx context.Context, i int) error {
		pick := r.picker()
		for !over.Load() {
			k := pick()
			got, err := c.Get(ctx, keys[k], loaders[k])
			if err := Check(keys[k], got, values[k], err); err != nil {
				return err
			}
			gets[i]++
		}
		return nil
	})
	sum := 0
	for _, n := range gets {
		sum += n
	}
	return float64(sum), err
}

// picker chooses keys for one caller.
func (r reading) picker() func() int {
	switch {
	case r.keys == 1:
		return func() int { return 0 }
	case r.zipf:
		z := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), 1.1, 1, uint64(r.keys-1))
		return func() int { return int(z.Uint64()) }
	}
	return func() int { return rand.IntN(r.keys) }
}

// stocked opens an instance that has everything where its hits come from, and connections. The caller closes it. What is in Redis
// was put there by an instance that is close, since a distance would take its time for each key.
func stocked(
	ctx context.Context, e Env, lib rivals.CacheLibrary, keys []string, values [][]byte,
) (_ rivals.Cache, err error) {
	setup := rivals.Setup{Redis: e.Redis.Options(), TTL: Forever, Entries: len(keys)}
	if e.RoundTrip > 0 {
		near, err := lib.Open(setup)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(Fill(ctx, near, keys, values, atOnce), near.Close()); err != nil {
			return nil, err
		}
	}
	setup.Redis = e.Options()
	c, err := lib.Open(setup)
	if err != nil {
		return nil, err
	}
	if e.RoundTrip > 0 && (lib.Kind == rivals.Shared || lib.Kind == rivals.Multiplexed) {
		keys, values = keys[:1], values[:1]
	}
	for range 2 { // what was stored must be read once more to be in memory
		err = Fill(ctx, c, keys, values, atOnce)
		if err == nil {
			err = e.Redis.Calm(ctx) // somebody stores in the background
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

const atOnce = 64 // callers who fill

// Fill reads every key, which loads what is missing, and opens the connections for that many callers.
func Fill(ctx context.Context, c rivals.Cache, keys []string, values [][]byte, callers int) error {
	var next atomic.Int64
	return Together(ctx, min(callers, atOnce), func(ctx context.Context, _ int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= max(len(keys), callers) {
				return nil
			}
			k := i % len(keys)
			got, err := c.Get(ctx, keys[k], func(context.Context) ([]byte, error) {
				return bytes.Clone(values[k]), nil // or a check would compare a value in memory with itself
			})
			if err := Check(keys[k], got, values[k], err); err != nil {
				return err
			}
		}
	})
}
