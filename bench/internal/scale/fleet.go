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
			Hooks: cacheguard.Hooks{OnJoin: func(string) { f.joins.Add(1) }},
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
