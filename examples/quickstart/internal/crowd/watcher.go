package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/backends"
)

// lookEvery is the pause between two looks at the entry.
const lookEvery = 2 * time.Millisecond

// A watcher counts how often the hot entry expired and came back. It only looks, from outside: over a connection of its
// own it asks Redis whether the entry exists, and knows nothing of the shops, their caches or their queries. So the
// count means the same for all runs, and a guard that queried twice for one expiry could not hide it.
//
// An entry that expired stays away at least as long as a query takes, and once back at least as long as the TTL, so
// looking every few milliseconds sees each absence. Should the watcher itself be held up for longer than that, blind
// tells. An entry that expired and that nobody came to ask for is not counted: there was nothing to rebuild.
type watcher struct {
	rdb *redis.Client
	key string

	expiries atomic.Int64
	stop     chan struct{} // closed to end the watch
	stopped  chan struct{} // closed when it has ended

	// Those below belong to the watch until it has ended.
	gone     bool
	lastLook time.Time
	blind    time.Duration // the longest time between two looks
	err      error
}

// watch begins to watch an entry that is there.
func watch(ctx context.Context, rdb *redis.Client, key string) *watcher {
	w := &watcher{rdb: rdb, key: key, stop: make(chan struct{}), stopped: make(chan struct{}), lastLook: time.Now()}
	go w.run(ctx) // owner: w; stop: w.stop or ctx; joined by end
	return w
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.stopped)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for w.look(ctx) {
		select {
		case <-tick.C:
		case <-w.stop:
			w.look(ctx) // the callers are done: this sees what the last of them stored
			return
		}
	}
}

// look asks once, and reports whether to go on.
func (w *watcher) look(ctx context.Context) bool {
	asked := time.Now()
	found, err := w.rdb.Exists(ctx, w.key).Result()
	if err != nil {
		w.err = fmt.Errorf("watch the entry: %w", err)
		return false
	}
	if found == 1 && w.gone {
		w.expiries.Add(1)
	}
	w.gone = found == 0
	w.blind = max(w.blind, time.Since(w.lastLook))
	w.lastLook = asked
	return true
}

// end stops watching when the last call has returned. It returns the number of expiries and the longest time between
// two looks.
func (w *watcher) end() (expiries int64, blind time.Duration, err error) {
	close(w.stop)
	<-w.stopped
	return w.expiries.Load(), w.blind, w.err
}

// A fleet is the instances of a service. They share nothing but Redis and the database, as processes on as many machines
// would: each has its own client, and its own Guard if it uses one.
type fleet struct {
	clients []*redis.Client
	shops   []shop
}

func openFleet(server *backends.RedisServer, db *database, c contestant, prefix string, s settings, count *backends.Commands) (*fleet, error) {
	f := &fleet{}
	for range s.instances {
		client := server.NewCountedClient(count)
		f.clients = append(f.clients, client)
		instance, err := c.Open(client, db, prefix, s.ttl)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.shops = append(f.shops, instance)
	}
	return f, nil
}

// warmUp stores the entry, so that the run begins with a warm cache and every rebuild in it follows an expiry. It asks
// twice: the first call returns as soon as it has the product, the second when the product is in Redis.
func (f *fleet) warmUp(ctx context.Context) error {
	_, err := f.shops[0].Product(ctx, hotProduct)
	if err == nil {
		_, err = f.shops[0].Product(ctx, hotProduct)
	}
	return err
}

// closeShops returns when all that they have queried is stored.
func (f *fleet) closeShops() error {
	var errs []error
	for _, instance := range f.shops {
		errs = append(errs, instance.Close())
	}
	f.shops = nil
	return errors.Join(errs...)
}

func (f *fleet) close() error {
	errs := []error{f.closeShops()}
	for _, client := range f.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
