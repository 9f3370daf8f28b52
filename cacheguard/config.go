package cacheguard

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/cache/packing"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/run/clock"
	"github.com/cacheguard/go/internal/run/config"
	"github.com/cacheguard/go/internal/run/logging"
)

// Config says how a Guard behaves; docs/production.md says how to choose. In every field 0 means the default, and -1
// switches the feature off where the field says so. Durations beyond 10 years count as 10 years.
type Config struct {
	// What most services set.
	//
	// Prefix begins every key in Redis: key K is at Prefix:{K}. Guards with one Prefix share their values, and must
	// agree on types and Codec. No braces. Default: cacheguard.
	Prefix string

	// TTL is how long an entry is fresh, to the millisecond. Default: 1 minute. -1: values are not stored, only loads
	// are shared.
	TTL time.Duration

	// Local is a tier in this process. Default: off.
	Local LocalConfig

	// Logger gets what an operator should know: docs/at-3am.md. Default: none.
	Logger *slog.Logger

	// LoadTimeout ends the context of a load; its callers get an error that matches context.DeadlineExceeded. Default:
	// 30 seconds. -1: none.
	LoadTimeout time.Duration

	// How long values live.
	//
	// StaleFor is how long after its TTL an entry is still served, while one load in the fleet replaces it or loads
	// fail. An Invalidate ends that. Default: 0, off.
	StaleFor time.Duration

	// NegativeTTL is how long ErrNotFound is remembered. Default: 10 seconds, at most TTL. -1: not at all.
	NegativeTTL time.Duration

	// FailureTTL bounds how long any other error of a loader is returned without a load: 50 ms, doubling with each
	// failure in a row. Only Invalidate of the key ends it, no tag. Default: 5 seconds, the longest. -1: not at all.
	FailureTTL time.Duration

	// Jitter shortens each TTL by a random share of up to this much. From 0 to 1. Default: 0.1. -1: off.
	Jitter float64

	// EarlyRefresh replaces entries in the background before they expire, sooner if they took long to load: the beta of
	// XFetch, at best 1. From 0 to 100. Default: 0, off.
	EarlyRefresh float64

	// How many loads, and how long they may wait.
	//
	// MaxLoads is how many loaders this Guard runs at once; others queue. A load that a loader asks for shares its
	// slot, and a loader that ignores its context keeps it. Default: 64. -1: no limit.
	MaxLoads int

	// Limiter bounds loads beside MaxLoads, as semaphore.NewLimiter does for the whole fleet: docs/production.md.
	// Default: none.
	Limiter Limiter

	// SlowLoad is when a load is reported. Default: a tenth of LoadTimeout, or 3 seconds. -1: never.
	SlowLoad time.Duration

	// WaitTimeout is how long a Get waits for another instance's load before it loads by itself. Default: LoadTimeout
	// plus RedisTimeout. -1: no limit but the context's.
	WaitTimeout time.Duration

	// LeaseTTL is how long the lease of a load outlives its instance. At least 100 milliseconds. Default: 5 seconds.
	LeaseTTL time.Duration

	// Absence and errors, without a CacheConfig's.
	//
	// NotFound is the loaders' error for absence. Default: ErrNotFound, on the loader's instance as it was wrapped.
	NotFound error

	// ErrorCodec lets errors of loaders travel to other instances. Default: none.
	ErrorCodec ErrorCodec

	// What writes may do.
	//
	// UpdateTimeout is how long an Update may hold its locks. Then the context of write ends, and Update returns an
	// error; if write goes on, others can write within LeaseTTL. At least LeaseTTL. Default: 1 minute, or LeaseTTL if
	// longer. -1: no limit.
	UpdateTimeout time.Duration

	// UpdateAnyway lets Update, Put and Intend write when Redis fails, without the lock. Default: false, they return a
	// *RedisError, and nothing is written.
	UpdateAnyway bool

	// Replicas is how many replicas (on a cluster, of each node) must acknowledge an invalidation or a write, else the
	// error matches ErrNotReplicated. All instances need the same number. See docs/locks.md. Default: 0, off.
	Replicas int

	// WriteLock is what Update, UpdateMany and Put lock with, instead of package rwlock. All instances need the same
	// one. See docs/locks.md. Default: none.
	WriteLock WriteLock

	// When Redis fails, or is slow: see docs/guarantees.md.
	//
	// RedisTimeout bounds each operation on Redis once it is sent, whatever the client's time-outs. At least a
	// millisecond. Default: 500 ms, and less, as measured, where nothing is loaded beside Redis.
	RedisTimeout time.Duration

	// HedgeAfter is how long a Get waits for a read of Redis before a loader runs beside it, in a spare slot; the first
	// answer wins. Default: as measured, from 5 ms to half of RedisTimeout. -1: never.
	HedgeAfter time.Duration

	// FailClosed makes a Get that Redis does not answer return a *RedisError, or a stale value of the local tier,
	// instead of loading. Default: false.
	FailClosed bool

	// Gate refuses keys (product:42 of a Cache) with an error: a call then loads without the cache. It is called
	// concurrently, for each key; it must be quick, and must not panic. See docs/rollout.md. Default: none.
	Gate func(ctx context.Context, key string) error

	// What is stored.
	//
	// Codec encodes values other than []byte and string. Default: encoding/json.
	Codec Codec

	// Compression makes stored entries smaller. Default: none.
	Compression Compression

	// MaxValueBytes bounds what is stored, encoded, before compression; larger values reach their callers alone.
	// Default: 8 MiB. -1: no limit but what Redis takes within RedisTimeout, and 512 MiB.
	MaxValueBytes int

	// What is reported.
	//
	// Instance is the name of this process, in logs, leases and locks. At most 50 bytes, without spaces and control
	// characters. Default: host:pid.
	Instance string

	// Observers hear what happens, after the Logger. Default: none.
	Observers []Observer

	// Hooks change the contexts of calls and loads, for tracing.
	Hooks Hooks

	// RedactError returns what other instances (LoadError.Message) and Inspect have of a loader's error, in 1 KiB. It
	// is called concurrently, not for what an ErrorCodec encodes. Default: err.Error().
	RedactError func(err error) string

	follows bool // no RedisTimeout is set: calls that load nothing beside Redis wait as long as it has ever needed

	clock clock.Clock // entries grow old by it: the machine's, or a test environment's (internal/cache/testenv)
}

const (
	defaultPrefix        = "cacheguard"
	defaultTTL           = time.Minute
	defaultNegativeTTL   = 10 * time.Second
	defaultJitter        = 0.1
	defaultLoadTimeout   = 30 * time.Second
	defaultLeaseTTL      = 5 * time.Second
	defaultUpdateTimeout = time.Minute
	minLeaseTTL          = 100 * time.Millisecond
	defaultMaxLoads      = 64
	defaultMaxValueBytes = 8 << 20
)

// off is the value that switches a feature off.
const off = config.Off

const longest = config.Longest

// check returns one error that names every field that is out of range.
func (c *Config) check() error {
	var p config.Problems
	bad := p.Add
	p.Prefix(c.Prefix)
	p.Instance(c.Instance)
	checkLives(&p, c.TTL, c.StaleFor, c.NegativeTTL, c.FailureTTL)
	checkShares(bad, c.Jitter, c.EarlyRefresh)
	p.Duration("LoadTimeout", c.LoadTimeout)
	p.Duration("WaitTimeout", c.WaitTimeout)
	p.Duration("SlowLoad", c.SlowLoad)
	p.Duration("HedgeAfter", c.HedgeAfter)
	p.Duration("UpdateTimeout", c.UpdateTimeout)
	if c.LeaseTTL != 0 && c.LeaseTTL < minLeaseTTL {
		bad("LeaseTTL", "%v is shorter than %v", c.LeaseTTL, minLeaseTTL)
	}
	if lease := c.withDefaults().LeaseTTL; c.UpdateTimeout > 0 && c.UpdateTimeout < lease {
		bad("UpdateTimeout", "%v is shorter than LeaseTTL (%v)", c.UpdateTimeout, lease)
	}
	if c.MaxLoads < off {
		bad("MaxLoads", "%d is negative (use -1 for no limit)", c.MaxLoads)
	}
	if c.MaxValueBytes < off {
		bad("MaxValueBytes", "%d is negative (use -1 for no limit)", c.MaxValueBytes)
	}
	p.Replicas(c.Replicas)
	if c.RedisTimeout < 0 || c.RedisTimeout > 0 && c.RedisTimeout < time.Millisecond {
		bad("RedisTimeout", "%v is shorter than a millisecond", c.RedisTimeout)
	}
	if slices.Contains(c.Observers, nil) {
		bad("Observers", "one is nil")
	}
	c.Local.check(bad)
	checkCompression(c.Compression, bad)
	return p.Err()
}

// checkLives looks at how long values live, which a Config and a CacheConfig both say.
func checkLives(p *config.Problems, ttl, staleFor, negativeTTL, failureTTL time.Duration) {
	p.Duration("TTL", ttl)
	p.Duration("StaleFor", staleFor)
	p.Duration("NegativeTTL", negativeTTL)
	if p.Duration("FailureTTL", failureTTL); failureTTL > protocol.LongestFailureMemory {
		p.Add("FailureTTL", "%v is longer than %v", failureTTL, protocol.LongestFailureMemory)
	}
}

// checkShares looks at what a Config and a CacheConfig both have.
func checkShares(bad func(field, format string, args ...any), jitter, earlyRefresh float64) {
	if jitter != off && !(jitter >= 0 && jitter <= 1) {
		bad("Jitter", "%v is not between 0 and 1", jitter)
	}
	if earlyRefresh != off && !(earlyRefresh >= 0 && earlyRefresh <= 100) {
		bad("EarlyRefresh", "%v is not between 0 and 100", earlyRefresh)
	}
}

// withDefaults fills in the defaults. A field that is off becomes 0 or, where 0 would mean something else, stays -1.
func (c Config) withDefaults() Config {
	config.SetDefault(&c.Prefix, defaultPrefix)
	config.SetDefault(&c.Instance, config.DefaultInstance())
	config.SetDefault(&c.TTL, defaultTTL)
	config.SetDefault(&c.NegativeTTL, min(defaultNegativeTTL, max(c.TTL, 0)))
	config.SetDefault(&c.FailureTTL, protocol.LongestFailureMemory)
	config.SetDefault(&c.Jitter, defaultJitter)
	config.SetDefault(&c.LoadTimeout, defaultLoadTimeout)
	config.SetDefault(&c.SlowLoad, max(c.LoadTimeout, 0)/10)
	config.SetDefault(&c.SlowLoad, defaultLoadTimeout/10)
	config.SetDefault(&c.LeaseTTL, defaultLeaseTTL)
	config.SetDefault(&c.UpdateTimeout, max(defaultUpdateTimeout, c.LeaseTTL))
	config.SetDefault(&c.MaxLoads, defaultMaxLoads)
	config.SetDefault(&c.MaxValueBytes, defaultMaxValueBytes)
	c.follows = c.follows || c.RedisTimeout == 0
	config.SetDefault(&c.RedisTimeout, config.DefaultRedisTimeout)
	if c.LoadTimeout == off {
		config.SetDefault(&c.WaitTimeout, off)
	}
	config.SetDefault(&c.WaitTimeout, min(c.LoadTimeout, longest)+c.RedisTimeout)
	config.SetDefault(&c.Local.TTL, defaultLocalTTL)
	config.SetDefault(&c.Local.MaxLag, defaultMaxLag)
	c.TTL, c.StaleFor, c.NegativeTTL, c.FailureTTL = max(c.TTL, 0), max(c.StaleFor, 0), max(c.NegativeTTL, 0), max(c.FailureTTL, 0)
	c.Jitter, c.EarlyRefresh, c.Replicas = max(c.Jitter, 0), max(c.EarlyRefresh, 0), max(c.Replicas, 0)
	for _, d := range []*time.Duration{
		&c.TTL, &c.StaleFor, &c.NegativeTTL, &c.LoadTimeout, &c.WaitTimeout, &c.LeaseTTL, &c.RedisTimeout, &c.UpdateTimeout,
		&c.Local.TTL, &c.Local.MaxLag,
	} {
		*d = min(*d, longest)
	}
	config.SetDefault(&c.Codec, Codec(jsonCodec{}))
	c.Logger = logging.Of(c.Logger, c.Prefix, c.Instance)
	return c
}

// packing says how entries are packed, and how large they may be.
func (c *Config) packing() packing.Packing {
	return packing.Packing{By: c.Compression, MaxBytes: c.MaxValueBytes}
}
