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
)

// Config says how a Guard behaves. In every field 0 means the default, and -1 switches the feature off where the field
// says so. Durations beyond 10 years count as 10 years. The fields are in groups, and the first of each has its
// heading: how long values live, loads, writes, when Redis fails, what is stored, besides Redis, and reports.
type Config struct {
	// Prefix begins every key in Redis: the value of key K is at Prefix:{K}. Guards with the same Prefix on the same
	// Redis share their values; they must agree on types and Codec. It may not contain braces. Default: cacheguard.
	Prefix string

	// Instance is the name of this process. Its leases and locks, which Inspect shows, and its logs have it. At most 50
	// bytes, without spaces and control characters. Default: host:pid.
	Instance string

	// How long values live.
	//
	// TTL is how long an entry is fresh, to the millisecond. A loader may choose another one with SetTTL.
	// Default: 1 minute. -1: values are not stored, only loads are shared.
	TTL time.Duration

	// StaleFor is how long after its TTL an entry is still served, while one background load in the fleet replaces it
	// or if such loads fail. An Invalidate ends that at once, except that a local tier serves its values as stale while
	// Redis does not answer, within Local.TTL, whatever others invalidate. Default: 0, off.
	StaleFor time.Duration

	// NegativeTTL is how long ErrNotFound is remembered. Default: 10 seconds, at most TTL. -1: not at all.
	NegativeTTL time.Duration

	// FailureTTL is how long any other error of a loader is remembered at most: 50 ms, and double that with each failure
	// in a row. Meanwhile callers on all instances get the error, or a stale value, and nobody asks the source. Default:
	// 5 seconds, which is the longest. -1: not at all. Then only those get it who asked before the loader failed or, on
	// other instances, before Redis knew; for an instance that cannot subscribe, it is kept for a second all the same.
	FailureTTL time.Duration

	// Jitter shortens each TTL by a random share of up to this much, so that entries written together do not expire
	// together. From 0 to 1. Default: 0.1. -1: off.
	Jitter float64

	// EarlyRefresh replaces entries in the background before they expire, the sooner the longer they took to load: it
	// is drawn at each answer, whether Redis has it or the local tier. Higher values refresh earlier. It is the beta of
	// XFetch (Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache Stampede Prevention, VLDB 2015): 1 is the
	// optimum under the paper's model. From 0 to 100. Default: 0, off.
	EarlyRefresh float64

	// Loads.
	//
	// LoadTimeout ends a load: its context is cancelled, and its callers get an error that matches
	// context.DeadlineExceeded. Default: 30 seconds. -1: none.
	LoadTimeout time.Duration

	// SlowLoad is the time beyond which the Logger reports a load as slow. Default: a tenth of LoadTimeout, or 3
	// seconds without one. -1: off.
	SlowLoad time.Duration

	// WaitTimeout is how long a Get waits for another instance's load before it loads by itself, without storing. Time
	// in the queue for MaxLoads does not count. Default: LoadTimeout and RedisTimeout, so that a slow load does not run
	// twice, and the failure of one that is too slow is shared. -1: no limit but the context's.
	WaitTimeout time.Duration

	// LeaseTTL is how long the lease of a load outlives an instance that dies. A third of LeaseTTL is the interval
	// of its renewals. At least 100 milliseconds. Default: 5 seconds.
	LeaseTTL time.Duration

	// MaxLoads is how many loaders this Guard runs at once. Excess loads queue until a slot frees or their callers give
	// up. Freed slots alternate between the load that waits longest and the one with the most waiting callers. A loader
	// that ignores its context keeps its slot even after LoadTimeout, and no other load of its key begins here. A
	// loader may call Get with the context it was given; such a load shares its slot. Default: 64. -1: no limit.
	MaxLoads int

	// Limiter is what each load that has a slot of MaxLoads takes a permit of, before its loader runs. Package
	// semaphore has one for the loads of the whole fleet, NewLimiter: it protects a database with few connections from
	// many instances with MaxLoads each. Excess loads keep their leases and queue until they have a permit or their
	// callers give up. Guards may share one. The Guard does not close it. Default: nil, none.
	Limiter Limiter

	// NotFound is the error for absence of loaders of keys without a Cache, and the default of a CacheConfig; see there.
	// Default: ErrNotFound, and callers on the loader's instance get that as it was wrapped.
	NotFound error

	// ErrorCodec lets errors of loaders travel to other instances, for keys without a Cache, and as the default of a
	// CacheConfig; see there. Default: none.
	ErrorCodec ErrorCodec

	// Writes.
	//
	// UpdateTimeout is how long an Update may hold its locks. Then the context of write ends. If write goes on, others
	// can write within LeaseTTL, Gets that miss wait and loads store nothing for up to twice LeaseTTL, and Update
	// returns an error when write returns. At least LeaseTTL. Default: 1 minute, or LeaseTTL if that is longer. -1: no
	// limit.
	UpdateTimeout time.Duration

	// UpdateAnyway lets Update write when it cannot take the lock because Redis fails. The write then runs without the
	// lock, and Update invalidates its keys as Invalidate does. Default: false, Update returns a *RedisError and does
	// not call write.
	UpdateAnyway bool

	// Replicas is how many replicas must acknowledge (WAIT) an Invalidate, InvalidateTags, InvalidateAll, Intend, Also,
	// Update or Put before it counts, so that a failover to one of them forgets no invalidation. If they do not within
	// RedisTimeout, the error matches ErrNotReplicated: an invalidation is then pending, although the primary has it,
	// an Intend and an Also fail, and an Update does not write. On a cluster, that many replicas of each node concerned
	// must acknowledge. Reads and loads do not wait. All instances need the same number. docs/locks.md says what this
	// does not promise. Default: 0, off.
	Replicas int

	// WriteLock is the lock that Update, UpdateMany and Put hold, instead of one of package rwlock on the Guard's
	// Redis: a *mutex.Locker, a *mutex.Quorum, or a Locker of a package below consensus. Its names are the keys with
	// the Guard's Prefix. If it outlives the Redis, two writes of a key do not run at once even after a failover;
	// docs/locks.md says what it changes and what not. All instances need the same one. The Guard does not close it.
	// Default: none.
	WriteLock WriteLock

	// When Redis fails.
	//
	// RedisTimeout bounds each operation on Redis, whatever the client's own time-outs and retries. The time before an
	// operation is sent does not count. Default: 500 ms, and less for a Get or a GetMany that loads nothing beside
	// Redis (HedgeAfter -1, in a transaction, or as its loads take longer): from 20 ms to 500 ms, but at least four
	// times the p99.9 of the replies of the last minute, as long as 99.95 % of them took, and as long as loads take on
	// average. Then the call loads, unless it is FailClosed.
	//
	// After a few operations in a row that took longer or failed, a circuit breaker opens (on a cluster, there is one
	// for each sixth of the slots): calls do not ask Redis, and writes fail at once, until it answers a probe. The
	// Guard sends one in the background every quarter to half of a second. By default go-redis dials five times, 100 ms
	// apart, so a Redis that refuses connections looks like one that does not answer. With redis.Options.DialerRetries
	// 1, the refusal shows at once.
	RedisTimeout time.Duration

	// HedgeAfter is how long a Get waits for a read of Redis before the loader runs beside it. The first answer wins,
	// so a Redis that is slow makes no call slow. Such a load takes a slot of MaxLoads and Limiter that no other load
	// waits for, and stores nothing. Callers of this Guard that began before it share it. The loader of one call may
	// then run twice at once. In a transaction, and with FailClosed, nothing is loaded beside Redis. Default: four
	// times the p99 of the replies of the last minute, at least as long as loads take on average, from 5 ms to half of
	// RedisTimeout.
	//
	// Redis, or a sixth of a cluster, is slow when half of its replies take longer than 20 ms and than the loads that
	// they save. The Guard notices that within a second. Until it is quick again (Stats.SlowParts), Gets of its keys
	// load and ask Redis at once, and a GetMany loads first, and asks Redis if that fails. -1: never load beside Redis,
	// or before it.
	HedgeAfter time.Duration

	// FailClosed makes Get return a *RedisError when Redis is unavailable, instead of loading without it. Stale values
	// of the local tier are served first. Default: false.
	FailClosed bool

	// What is stored.
	//
	// Codec encodes values other than []byte and string. Default: encoding/json.
	Codec Codec

	// Compression makes stored entries smaller: encoded values, []byte, strings and pages of the middleware. Instances
	// with different Compression may share a Prefix. MaxValueBytes bounds the size before compression, so it must not
	// differ. Default: none.
	Compression Compression

	// MaxValueBytes is the size of the largest value stored, encoded. Larger ones reach their callers but not the
	// cache. A larger value in Redis is not used, whichever program stored it: a Get replaces it, and removes it if it
	// cannot be read within RedisTimeout. Instances that share a Prefix should agree on it. Default: 8 MiB. -1: no
	// limit but what Redis takes within RedisTimeout, and 512 MiB (proto-max-bulk-len): it closes the connection for
	// more.
	MaxValueBytes int

	// Besides Redis, or instead of it.
	//
	// Local is a tier in this process, in front of Redis. Default: off.
	Local LocalConfig

	// Gate says whether a call may use the cache for the key: nil, it may. Else it loads without the cache, with the
	// outcome bypassed, as after Bypass: nothing of the call is read or stored; EventGated, the Logger and the page
	// have the error. Invalidations and updates of all keys go on, so what is let in again has no old value. It is
	// asked in each Get, Fetch and Warm, and in a GetMany for each key, before anything is read, with the caller's
	// context and the Guard's key (product:42 for a Cache). It is called concurrently, must be quick, and must not
	// panic. Default: all may.
	Gate func(ctx context.Context, key string) error

	// Reports.
	//
	// Observers are told what happens, for metrics and tests, after the Logger. Default: none.
	Observers []Observer

	// Hooks change the contexts of calls and loads, for tracing.
	Hooks Hooks

	// Logger gets what an operator should know and no caller learns: values that cannot be stored or decoded, loaders
	// that panic or are slow, background loads that fail, leases lost or taken over; and the beginning and end of
	// lasting conditions: Redis unavailable, invalidations pending, the subscription lost, MaxLoads or Limiter
	// saturated, loads failing, the cache bypassed. It gets one record of each kind every ten seconds; the attribute
	// more counts those left out. Each has cache (the Prefix), instance, and where there are some key, and kind (the
	// Name of its Cache). Default: none.
	Logger *slog.Logger

	// RedactError returns what may be known of a loader's error outside of this process: the Message of the LoadError
	// that other instances get, and of Inspect. It stands in Redis for 5 seconds at most, and is cut at 1 KiB. Callers,
	// Observers and Logger here have the error itself. It is called concurrently, and not asked about what a
	// CacheConfig.ErrorCodec encodes. Default: err.Error().
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
	config.SetDefault(&c.Logger, slog.New(slog.DiscardHandler))
	c.Logger = c.Logger.With("cache", c.Prefix, "instance", c.Instance)
	return c
}

// packing says how entries are packed, and how large they may be.
func (c *Config) packing() packing.Packing {
	return packing.Packing{By: c.Compression, MaxBytes: c.MaxValueBytes}
}
