package consistency

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/rwlock"
)

// cache is a way to cache the rows.
type cache interface {
	get(ctx context.Context, key string) (version int64, err error)
	// update calls begun when it has made its announcements, and then writes. With put, it stores what it wrote, if it can.
	update(ctx context.Context, key string, put bool, begun func()) (version int64, err error)
}

func openCache(t *testing.T, kind, addr string, source rows) cache {
	t.Helper()
	options := &redis.Options{Addr: addr, PoolSize: 40, DialTimeout: hastyLease, ReadTimeout: hastyLease / 2}
	if kind == "patient" { // nothing fails there, and a busy machine is late
		options.DialTimeout, options.ReadTimeout = redistest.Patience, redistest.Patience
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	if kind == "by hand" {
		return byHand{rdb, source}
	}
	cfg := cacheguard.Config{TTL: time.Hour, RedisTimeout: redistest.Patience}
	if kind == "hasty" { // leases are long for a process that runs, and short for one that is paused
		cfg.LeaseTTL, cfg.WaitTimeout, cfg.RedisTimeout = hastyLease, 2*time.Second, hastyLease
	}
	return openGuarded(t, rdb, cfg, source)
}

const hastyLease = time.Second

func openGuarded(t *testing.T, rdb cacheguard.Redis, cfg cacheguard.Config, source rows) guarded {
	t.Helper()
	g, err := cacheguard.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	versions, err := cacheguard.NewCache(g, cacheguard.CacheConfig[string, int64]{
		Name: kindName,
		Load: func(ctx context.Context, key string) (int64, error) {
			version, ttl, err := load(ctx, source, key)
			cacheguard.SetTTL(ctx, ttl)
			return version, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return guarded{versions, source}
}

const kindName = "row"

// nameOf is where the cache has the row in Redis.
func nameOf(key string) string { return "cacheguard:{" + kindName + ":" + key + "}" }

// guarded is Update, and Put.
type guarded struct {
	*cacheguard.Cache[string, int64]
	source rows
}

func (c guarded) get(ctx context.Context, key string) (int64, error) { return c.Get(ctx, key) }

func (c guarded) update(ctx context.Context, key string, put bool, begun func()) (version int64, err error) {
	write := func(ctx context.Context) (_ int64, err error) {
		begun()
		fence, ok := rwlock.FenceFrom(ctx)
		if !ok {
			return 0, errors.New("no fence")
		}
		version, err = write(ctx, c.source, key, fence)
		return version, err
	}
	if put {
		err = c.Put(ctx, key, write)
		return version, err
	}
	err = c.Update(ctx, key, func(ctx context.Context) error {
		_, err := write(ctx)
		return err
	})
	return version, err
}

// byHand is what most do: it deletes what is cached after the write.
type byHand struct {
	*redis.Client
	source rows
}

func (c byHand) get(ctx context.Context, key string) (int64, error) {
	if version, err := c.Get(ctx, key).Int64(); err == nil {
		return version, nil
	}
	version, ttl, err := load(ctx, c.source, key)
	if err == nil {
		_ = c.Set(ctx, key, version, ttl).Err() // then it is not cached
	}
	return version, err
}

func (c byHand) update(ctx context.Context, key string, _ bool, begun func()) (int64, error) {
	begun()
	version, err := write(ctx, c.source, key, 0)
	if err != nil {
		return 0, err
	}
	return version, c.Del(ctx, key).Err()
}

// load takes its time after it has read, and half of what it brings expires soon.
func load(ctx context.Context, source rows, key string) (version int64, ttl time.Duration, err error) {
	version, err = source.read(ctx, key)
	pause(20 * time.Millisecond)
	return version, []time.Duration{50 * time.Millisecond, time.Hour}[rand.N(2)], err
}

// write takes its time before and after it has written, now and then a lot of it. It is not stopped when the lock is lost, so that there are zombies,
// and it is always known what was written.
func write(ctx context.Context, source rows, key string, fence int64) (int64, error) {
	pauseAtTimes(10*time.Millisecond, 400*time.Millisecond)
	version, err := source.write(context.WithoutCancel(ctx), key, fence)
	pauseAtTimes(10*time.Millisecond, 400*time.Millisecond)
	return version, err
}

// pauseAtTimes pauses; one pause in ten may be long.
func pauseAtTimes(short, long time.Duration) { pause([]time.Duration{short, long}[rand.N(10)/9]) }

// pause lets something else happen.
func pause(longest time.Duration) { <-time.After(rand.N(longest)) }
