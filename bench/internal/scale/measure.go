package scale

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// measured is what a fleet's waves took: medians of counts, of microseconds and, of one more wave, bytes.
type measured struct {
	loads, requests, commands   float64
	joiningServer, wakingServer float64
	wakingScript                float64
	joiningClient, wakingClient float64
	p50, p99, last              float64
	best                        float64 // the last answer of the wave that was disturbed least
	idle, waiting               float64 // bytes of this process: in all; more of them while all wait
	connections, lease          float64 // bytes of the server: for connections in all; of the key that all wait for
}

// measure runs waves for d, and at least that many.
func (f *fleet) measure(ctx context.Context, callers, atLeast int, d time.Duration) (*measured, error) {
	if err := f.warmUp(ctx, callers); err != nil {
		return nil, err
	}
	var waves []*wave
	for began := time.Now(); len(waves) < atLeast || time.Since(began) < d; {
		w, err := f.wave(ctx, callers, nil)
		if err != nil {
			return nil, err
		}
		waves = append(waves, w)
	}
	m := summary(waves)
	return m, f.weigh(ctx, callers, m)
}

// weigh measures memory: the median of a few waves, as buffers and stacks come and go.
func (f *fleet) weigh(ctx context.Context, callers int, m *measured) error {
	const times = 3
	var idle, waiting, connections []float64
	for range times {
		was := here()
		_, err := f.wave(ctx, callers, func(key string) error {
			idle, waiting = append(idle, was), append(waiting, here()-was)
			clients, _, err := memoryAt(ctx, f.redis)
			connections = append(connections, clients)
			if err == nil {
				m.lease, err = bytesOfKeys(ctx, f.redis, key)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	m.idle, m.waiting, m.connections = median(idle), median(waiting), median(connections)
	return nil
}

func summary(waves []*wave) *measured {
	of := func(figure func(*wave) float64) float64 {
		var all []float64
		for _, w := range waves {
			all = append(all, figure(w))
		}
		return median(all)
	}
	best := slices.MinFunc(waves, func(a, b *wave) int { return cmp.Compare(a.at(100), b.at(100)) })
	return &measured{
		loads:         of(func(w *wave) float64 { return float64(w.loads) }),
		requests:      of(func(w *wave) float64 { return float64(w.joining.spent.Requests + w.waking.spent.Requests) }),
		commands:      of(func(w *wave) float64 { return float64(w.joining.spent.Total() + w.waking.spent.Total()) }),
		joiningServer: of(func(w *wave) float64 { return scenario.Micros(w.joining.spent.CPU) }),
		wakingServer:  of(func(w *wave) float64 { return scenario.Micros(w.waking.spent.CPU) }),
		wakingScript:  of(func(w *wave) float64 { return scenario.Micros(w.waking.spent.Scripts) }),
		joiningClient: of(func(w *wave) float64 { return scenario.Micros(w.joining.client) }),
		wakingClient:  of(func(w *wave) float64 { return scenario.Micros(w.waking.client) }),
		p50:           of(func(w *wave) float64 { return scenario.Micros(w.at(50)) }),
		p99:           of(func(w *wave) float64 { return scenario.Micros(w.at(99)) }),
		last:          of(func(w *wave) float64 { return scenario.Micros(w.at(100)) }),
		best:          scenario.Micros(best.at(100)),
	}
}

// memory is what is in use before a fleet is opened.
type memory struct{ here, connections, data float64 }

func stand(ctx context.Context, redisServer *server.Server) (m memory, err error) {
	m.connections, m.data, err = memoryAt(ctx, redisServer)
	m.here = here()
	return m, err
}
