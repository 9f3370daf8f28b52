package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
)

// thinkTime is the mean pause of a caller between two calls. With a much shorter one, the crowd would saturate the CPU
// of a laptop, and the latencies would tell about that and not about the cache.
const thinkTime = 50 * time.Millisecond

// calls is what callers went through.
type calls struct {
	waits  []time.Duration // of the calls that got their product
	failed int
	err    error // the first that a call returned
}

// crowd sends callers to all shops, and returns when the last call has. While open lasts, each caller calls again and
// again; calls under way when it ends are let finish. Only ctx cuts them short.
func crowd(ctx, open context.Context, shops []shop, callers int) calls {
	var mu sync.Mutex
	var all calls
	var running sync.WaitGroup
	for _, s := range shops {
		for range callers {
			running.Go(func() { // owner: crowd; stop: open and ctx; joined below
				own := caller(ctx, open, s)
				mu.Lock()
				defer mu.Unlock()
				all.add(own)
			})
		}
	}
	running.Wait()
	return all
}

// caller thinks and calls in turn.
func caller(ctx, open context.Context, s shop) (c calls) {
	for program.Pause(open, thinkTime/2+rand.N(thinkTime)) {
		start := time.Now()
		_, err := s.Product(ctx, hotProduct)
		switch {
		case err == nil:
			c.waits = append(c.waits, time.Since(start))
		case ctx.Err() != nil:
			return c // the run was interrupted: that is no failure of the shop
		default:
			c.add(calls{failed: 1, err: err})
		}
	}
	return c
}

func (c *calls) add(more calls) {
	c.waits = append(c.waits, more.waits...)
	c.failed += more.failed
	if c.err == nil {
		c.err = more.err
	}
}

// A shop is one instance of a service that reads products through a cache.
type shop interface {
	Product(ctx context.Context, id int) (product, error)
	Close() error
}

// contestant is a kind of shop. The last contestant has to keep cacheguard's promise.
type contestant struct {
	Name string
	// Open opens an instance. In Redis, the entry of the product with the id N is prefix:{product:N}, where a Guard keeps that
	// of the key product:N, and lives for the ttl.
	Open func(rdb *redis.Client, db *database, prefix string, ttl time.Duration) (shop, error)
}

// hotProduct is the one that everybody wants.
const hotProduct = 42

// entryKey is where its entry is, so that one watcher does for all.
func entryKey(prefix string) string { return fmt.Sprintf("%s:{product:%d}", prefix, hotProduct) }
