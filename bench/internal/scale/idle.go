package scale

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// idleGuards have ever more instances do nothing, after they have waited for a key.
func idleGuards() scenario.Scenario {
	s := scenario.Scenario{
		Name: "scale-idle",
		About: "Instances do nothing, less than a minute after they waited for a key: each sends itself a message through Redis every " +
			"few seconds, to see that its subscription lives. Requests and processor time by second.",
		Metrics: []scenario.Metric{
			{Name: "requests", Unit: "/s", Better: scenario.Lower},
			{Name: "server CPU", Unit: "ms", Better: scenario.Lower},
			{Name: "client CPU", Unit: "ms", Better: scenario.Lower},
		},
	}
	for _, n := range []int{100, 1000, 3000} {
		s.Cases = append(s.Cases, scenario.Case{
			Name:   scenario.Thousands(n) + " guards",
			Params: map[string]float64{"guards": float64(n)},
			Entries: checked(
				func(ctx context.Context, e scenario.Env) (scenario.Figures, error) { return runIdle(ctx, e, n) },
				func(c *costs) scenario.Figures {
					probes := float64(n) / probePeriod.Seconds()
					return scenario.Figures{"requests": probes, "server CPU": (probes*c.probe + c.idle) / 1000}
				}),
		})
	}
	return s
}

// probePeriod is how often an instance sends itself a message: a watchdog that looks every second for a silence of more
// than two finds one at every third look, as the message came a little after the look.
const probePeriod = 3 * time.Second

func runIdle(ctx context.Context, e scenario.Env, n int) (_ scenario.Figures, err error) {
	f, err := openFleet(e.Redis, n, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.warmUp(ctx, 1); err != nil {
		return nil, err
	}
	if !scenario.Pause(ctx, probePeriod) { // until it is as it will stay
		return nil, ctx.Err()
	}
	f.idleServer, f.idleClient = 0, 0 // idleness is what is to be measured
	before, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	const periods = 2
	if !scenario.Pause(ctx, periods*probePeriod) {
		return nil, ctx.Err()
	}
	after, err := f.look(ctx)
	did, seconds := f.since(before, after), (periods * probePeriod).Seconds()
	return scenario.Figures{
		"requests":   float64(did.spent.Requests) / seconds,
		"server CPU": scenario.Millis(did.spent.CPU) / seconds,
		"client CPU": scenario.Millis(did.client) / seconds,
	}, err
}

// here is how many bytes of this process are in use: what is on the heap, and the goroutines' stacks.
func here() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what was in a sync.Pool survives one
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// memoryAt is how many bytes the server uses: for its clients, and for all else.
func memoryAt(ctx context.Context, redis *server.Server) (clients, data float64, err error) {
	text, err := redis.Control().Info(ctx, "memory").Result()
	if err != nil {
		return 0, 0, err
	}
	all := make(map[string]float64)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				all[name] = n
			}
		}
	}
	used, clients := all["used_memory"], all["mem_clients_normal"]
	if used == 0 {
		return 0, 0, fmt.Errorf("INFO memory: no used_memory in %q", text)
	}
	return clients, used - clients, nil
}

// bytesOfKeys is what the keys whose names contain the text take at the server, where there are few keys.
func bytesOfKeys(ctx context.Context, redis *server.Server, text string) (sum float64, err error) {
	const batch = 1000
	all := redis.Control().Scan(ctx, 0, "*"+text+"*", batch).Iterator()
	for all.Next(ctx) {
		n, err := redis.Control().MemoryUsage(ctx, all.Val(), 0).Result() // 0: look at every element
		if err != nil {
			return 0, err
		}
		sum += float64(n)
	}
	return sum, all.Err()
}
