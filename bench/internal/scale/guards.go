package scale

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/rivals"
	"github.com/cacheguard/go/bench/internal/scenario"
	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
)

// manyGuards have ever more instances wait for one key.
func manyGuards() scenario.Scenario {
	s := scenario.Scenario{
		Name: "scale-guards",
		About: "Instances, one caller each, ask at once for one key that nobody has, and all wait before its load ends. " +
			"Answers are timed from that end; at best is the last answer of the least disturbed stampede. Requests, commands and " +
			"server CPU are by stampede. Memory of this process (heap and stacks) and of the server: by instance that is idle but warm, more by instance that waits, and the whole lease.",
		Metrics: waveMetrics(
			scenario.Metric{Name: "guard", Unit: "KiB", Better: scenario.Lower},
			scenario.Metric{Name: "waiting", Unit: "KiB", Better: scenario.Lower},
			scenario.Metric{Name: "connections", Unit: "KiB", Better: scenario.Lower},
			scenario.Metric{Name: "lease", Unit: "KiB", Better: scenario.Lower},
		),
	}
	add := func(n int, shared bool) {
		name, inboxes := scenario.Thousands(n)+" guards, a client each", n-1
		if shared {
			name, inboxes = scenario.Thousands(n)+" guards on one client", 1
		}
		s.Cases = append(s.Cases, scenario.Case{
			Name:   name,
			Params: map[string]float64{"guards": float64(n), "inboxes": float64(inboxes)},
			Smoke:  n == 10,
			Entries: checked(
				func(ctx context.Context, e scenario.Env) (scenario.Figures, error) {
					return runGuards(ctx, e, n, shared)
				},
				func(c *costs) scenario.Figures {
					f, each := c.wave(n, inboxes, 1), c.at(n)
					f["guard"], f["connections"] = each.guard/scenario.Kibibyte, each.connections/scenario.Kibibyte
					if shared {
						f["guard"] = (each.guard + c.sharing*float64(n-1)) / float64(n) / scenario.Kibibyte
						delete(f, "connections") // as many as the pool has
					}
					return f
				}),
		})
	}
	for _, n := range []int{1, 10, 100, 1000, 3000} {
		add(n, false)
	}
	add(1000, true)
	return s
}

// leastWaves is how many waves are measured however long they take.
const leastWaves = 7

func runGuards(ctx context.Context, e scenario.Env, n int, shared bool) (_ scenario.Figures, err error) {
	was, err := stand(ctx, e.Redis)
	if err != nil {
		return nil, err
	}
	f, err := openFleet(e.Redis, n, shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	m, err := f.measure(ctx, 1, leastWaves, e.For)
	if err != nil {
		return nil, err
	}
	figures := m.figures(float64(n))
	if n > 1 { // one guard is less than what comes and goes anyway
		figures["guard"] = (m.idle - was.here) / float64(n) / scenario.Kibibyte
	}
	figures["connections"] = (m.connections - was.connections) / float64(n) / scenario.Kibibyte
	return figures, nil
}

// fleet is many instances in this process. Each is a Guard with a client of its own, as processes have, so it has
// connections and an inbox of its own; or all share one client, and with it one inbox.
type fleet struct {
	redis   *server.Server
	clients []*redis.Client
	guards  []*cacheguard.Guard
	known   string       // a key that is cached
	joins   atomic.Int64 // calls that joined the flight of another one of their Guard

	looks                  int
	lookServer, lookClient time.Duration // what a look costs
	idleServer, idleClient time.Duration // what an idle second costs
}

// fleetTimeout is the Guards' RedisTimeout. As thousands of them share this process's few processors, the usual half
// second would measure these.
const fleetTimeout = 10 * time.Second

// openFleet opens n instances. The caller closes the fleet.
func openFleet(redisServer *server.Server, n int, shared bool) (*fleet, error) {
	f := &fleet{redis: redisServer, known: scenario.NewKey()}
	for range n {
		if len(f.clients) == 0 || !shared {
			o := f.redis.Options()
			o.PoolSize = 20
			f.clients = append(f.clients, redis.NewClient(o))
		}
		g, err := cacheguard.New(f.clients[len(f.clients)-1], cacheguard.Config{
			Prefix: rivals.Prefix + "fleet", TTL: scenario.Forever, Jitter: -1, RedisTimeout: fleetTimeout,
			Observers: []cacheguard.Observer{cacheguard.On(cacheguard.EventJoin, func(context.Context, cacheguard.Event) { f.joins.Add(1) })},
		})
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.guards = append(f.guards, g)
	}
	return f, nil
}

func (f *fleet) close() error {
	closing := make(chan struct{}, 64) // that many at once
	done := make(chan struct{})
	for _, g := range f.guards {
		closing <- struct{}{}
		go func() { // owner: close; stop: Close returns; joined below
			_ = g.Close() // always nil
			<-closing
			done <- struct{}{}
		}()
	}
	for range f.guards {
		<-done
	}
	return scenario.CloseAll(f.clients)
}

// recall has every instance read a key that is cached. An instance that had nothing but misses would guess that the next Get misses, too, and ask for the
// lease at once: that is not how a key that is in use expires.
func (f *fleet) recall(ctx context.Context) error {
	load := func(context.Context) (int, error) { return 1, nil }
	return scenario.Together(ctx, len(f.guards), func(ctx context.Context, i int) error {
		_, err := cacheguard.Get(ctx, f.guards[i], f.known, load)
		return err
	})
}

// inboxes is how many of the fleet's inboxes wait while one of its instances loads.
func (f *fleet) inboxes() int {
	if len(f.clients) == 1 {
		return min(1, len(f.guards)-1)
	}
	return len(f.clients) - 1
}

// warmUp has every instance load once, which tells it the epochs that loads need, and runs waves until one opens no connection and all who
// wait are woken by a message.
func (f *fleet) warmUp(ctx context.Context, callers int) error {
	for _, g := range f.guards {
		load := func(context.Context) (int, error) { return 0, nil }
		if _, err := cacheguard.Get(ctx, g, scenario.NewKey(), load); err != nil {
			return err
		}
	}
	const atLeast, atMost = 3, 30
	var did map[string]int64
	for i := range atMost {
		w, err := f.wave(ctx, callers, nil)
		if err != nil {
			return err
		}
		did = w.joining.spent.Plus(w.waking.spent).Commands
		if i+1 >= atLeast && did["hello"]+did["subscribe"]+did["script|load"] == 0 && did["publish"] >= int64(f.inboxes()) {
			return errors.Join(f.priceLooks(ctx), f.priceTime(ctx, 200*time.Millisecond))
		}
	}
	return fmt.Errorf("not warm after %d waves; the last one: %v", atMost, did)
}
