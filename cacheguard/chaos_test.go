package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// The promise under random faults: what a Get returns is never older than the newest version whose Invalidate had
// returned nil before the Get began. CHAOS=1m makes it run for a minute.
func TestNoGetReturnsWhatWasInvalidatedBeforeItBegan(t *testing.T) {
	t.Parallel()
	long, err := time.ParseDuration(os.Getenv("CHAOS"))
	if err != nil {
		long = 2 * time.Second
	}
	c := newChaos(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for k := range c.keys {
		wg.Go(func() { c.write(ctx, k) }) // one writer for each key, so that versions are acknowledged in their order
	}
	for range 40 {
		wg.Go(func() { c.read(ctx) })
	}
	wg.Go(func() { c.disturb(ctx) })
	<-time.After(long)
	redistest.Await(t, "something happened", func() bool { return c.gets.Load() > 0 && c.acknowledged.Load() > 0 })
	cancel()
	wg.Wait()
	t.Logf("%d gets, %d invalidations; %v", c.gets.Load(), c.acknowledged.Load(), c.fleet.events.outcomes)
}

type chaos struct {
	*testing.T
	fleet   *fleet
	proxies []*redistest.Proxy
	keys    [3]struct {
		version atomic.Int64 // in the database
		least   atomic.Int64 // the newest whose Invalidate returned nil
	}
	gets, acknowledged atomic.Int64
}

// newChaos makes four instances behind proxies, whose every duration is short.
func newChaos(t *testing.T) *chaos {
	server := redistest.Start(t)
	c := &chaos{T: t}
	var instances []client
	for range 4 {
		p := redistest.StartProxy(t, server.Addr())
		c.proxies = append(c.proxies, p)
		instances = append(instances, p.Client(t, func(o *redis.Options) {
			o.ReadTimeout, o.DialTimeout = 60*time.Millisecond, 200*time.Millisecond
		}))
	}
	c.fleet = newFleetOn(t, server.Client(t), Config{
		TTL: 30 * time.Millisecond, StaleFor: 200 * time.Millisecond, NegativeTTL: 20 * time.Millisecond, EarlyRefresh: 1,
		LeaseTTL: 100 * time.Millisecond, RedisTimeout: 150 * time.Millisecond, WaitTimeout: 80 * time.Millisecond, // some are to be exceeded
		LoadTimeout: time.Second, MaxLoads: 8,
	}, instances...)
	c.fleet.events.quiet = true
	return c
}

func (c *chaos) guard() *Guard { return c.fleet.guards[rand.N(len(c.fleet.guards))] }

// pause lets something else happen.
func pause(longest time.Duration) { <-time.After(rand.N(longest)) }

// breathe pauses between calls that are samples of many: four times as long if few samples do.
func breathe(longest time.Duration) { pause(longest * 4 / time.Duration(expect.Samples(1, 4))) }

func (c *chaos) write(ctx context.Context, k int) {
	for ctx.Err() == nil {
		version := c.keys[k].version.Add(1)
		if c.guard().Invalidate(context.Background(), fmt.Sprint("k", k)) == nil {
			c.keys[k].least.Store(version)
			c.acknowledged.Add(1)
		}
		pause(30 * time.Millisecond)
	}
}

func (c *chaos) read(ctx context.Context) {
	for ctx.Err() == nil {
		k := rand.N(len(c.keys))
		least := c.keys[k].least.Load()
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(200*time.Millisecond)+5*time.Millisecond)
		got, err := Get(ctx, c.guard(), fmt.Sprint("k", k), c.load(k))
		cancel()
		c.gets.Add(1)
		if err == nil && got < least {
			c.Errorf("k%d: got version %d, want at least %d", k, got, least)
		}
	}
}

func (c *chaos) load(k int) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		version := c.keys[k].version.Load()
		pause(150 * time.Millisecond)
		switch rand.N(10) {
		case 0:
			return 0, errors.New("failed")
		case 1:
			SetTTL(ctx, 0)
		}
		return version, ctx.Err()
	}
}

func (c *chaos) disturb(ctx context.Context) {
	scripts := []string{"acquire", "fill", "fail", "release", "renew", "invalidate"}
	faults := []redistest.Fault{
		redistest.DropReply, redistest.SwallowReply, redistest.CutBefore, redistest.Hold, redistest.HoldReply,
	}
	for ctx.Err() == nil {
		p := c.proxies[rand.N(len(c.proxies))]
		match := scriptOf(scripts[rand.N(len(scripts))])
		if rand.N(5) == 0 {
			match = reading
		}
		rule := p.On(match, faults[rand.N(len(faults))]).Times(1 + rand.N(3))
		pause(100 * time.Millisecond)
		rule.Remove()
		switch rand.N(20) {
		case 0:
			p.Cut()
		case 1:
			c.fleet.redis.FlushAll(ctx)
		case 2:
			c.fleet.redis.Del(ctx, c.fleet.lease(fmt.Sprint("k", rand.N(len(c.keys)))))
		}
	}
}
