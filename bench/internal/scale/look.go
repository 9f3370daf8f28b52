package scale

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
)

// phase is what happened between two looks.
type phase struct {
	spent  server.Usage
	client time.Duration // processor time of this process
}

// look is where the server and this process stand.
type look struct {
	at     time.Time
	usage  server.Usage
	client time.Duration
	count  int // of the fleet's looks so far
}

// look asks the server.
func (f *fleet) look(ctx context.Context) (l look, err error) {
	l.at, l.client = time.Now(), scenario.ProcessTime()
	l.usage, err = f.redis.Usage(ctx)
	f.looks++
	l.count = f.looks
	return l, err
}

// since is what happened between the looks, without what looking costs, and without what happens anyway.
func (f *fleet) since(before, now look) phase {
	looks, seconds := float64(now.count-before.count), now.at.Sub(before.at).Seconds()
	without := func(all, look, idle time.Duration) time.Duration {
		return all - time.Duration(looks*float64(look)+seconds*float64(idle))
	}
	p := phase{spent: now.usage.Since(before.usage)}
	p.spent.CPU = without(p.spent.CPU, f.lookServer, f.idleServer)
	p.client = without(now.client-before.client, f.lookClient, f.idleClient)
	return p
}

// priceTime finds out what goes on when nobody asks for anything.
func (f *fleet) priceTime(ctx context.Context, watched time.Duration) error {
	f.idleServer, f.idleClient = 0, 0
	before, err := f.look(ctx)
	if err != nil {
		return err
	}
	scenario.Pause(ctx, watched)
	after, err := f.look(ctx)
	did, seconds := f.since(before, after), after.at.Sub(before.at).Seconds()
	f.idleServer = time.Duration(float64(max(did.spent.CPU, 0)) / seconds)
	f.idleClient = time.Duration(float64(max(did.client, 0)) / seconds)
	return err
}

// priceLooks finds out what a look costs.
func (f *fleet) priceLooks(ctx context.Context) error {
	const times, apart = 21, time.Millisecond // as far as those of a wave are
	var onServer, here []time.Duration
	last, err := f.look(ctx)
	for range times {
		scenario.Pause(ctx, apart)
		now, lookErr := f.look(ctx)
		if err == nil {
			err = lookErr
		}
		onServer = append(onServer, now.usage.CPU-last.usage.CPU)
		here = append(here, now.client-last.client)
		last = now
	}
	f.lookServer, f.lookClient = median(onServer), median(here)
	return err
}

func median[N ~int64 | ~float64](all []N) N {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

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
