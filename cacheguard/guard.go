package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard/internal/limit"
	"github.com/cacheguard/go/internal/bypass"
	"github.com/cacheguard/go/internal/config"
	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/failure"
	"github.com/cacheguard/go/internal/flight"
	"github.com/cacheguard/go/internal/guess"
	"github.com/cacheguard/go/internal/health"
	"github.com/cacheguard/go/internal/inprocess"
	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/kit"
	"github.com/cacheguard/go/internal/lease"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/locker"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/replicas"
	"github.com/cacheguard/go/internal/report"
	"github.com/cacheguard/go/internal/serverclock"
	"github.com/cacheguard/go/internal/tier"
	"github.com/cacheguard/go/internal/verify"
	"github.com/cacheguard/go/internal/wake"
	"github.com/cacheguard/go/rwlock"
	"github.com/cacheguard/go/semaphore"
)

// Guard is a read-through cache in front of a slow source. It is safe for concurrent use.
type Guard struct {
	rdb   Redis
	cfg   Config
	keys  protocol.Keyspace
	plain bool // the client sends any command as it is; one for a cluster may split it by key, or refuse it in a pipeline

	// The way of a Get.
	clock    flight.Clock
	local    *tier.Local // nil: there is no such tier
	expected guess.Misses
	ordinary policy // of entries of no Cache
	kinds    kinds
	detours  detours
	link     *link.Link
	flights  flight.Group[flightKey, answer]
	loaders  loaders
	failures failure.Memory

	// What goes on beside it.
	invalidations invalidations
	epochs        *epoch.Epochs
	ofEpochs      *epochInvalidations
	intents       intents
	process       inprocess.Process // where Redis is not used
	notices       *tier.Notices
	locks         *rwlock.Locker  // of Update
	together      locker.Together // the same
	journal       report.Journal
	verifier      verify.Verifier
	samples       bool // some answers are compared with the cache, or the source
	serving       serving
	warming       atomic.Int64 // calls of Warm
	bypass        *bypass.Switch
	written       atomic.Uint64 // bytes of entries that loads stored, ever
	dropping      atomic.Bool   // a value that is too large to be read is being removed
	inbox         *wake.Inbox
	keeper        *lease.Keeper
	acks          *replicas.Sender // nil: no replica has to acknowledge anything
	health        *health.Health
	serverClocks  *serverclock.Clocks

	// The end.
	life    *lifecycle.Life // calls, loaders, and operations that may outlast the call that started them
	leave   func()          // gives up the inbox and the keeper
	closing sync.Once
}

// New returns a Guard. It does no I/O and starts no goroutine. An unreachable Redis is not an error here: Hooks.OnRedisError
// and the Logger report it later. The error names every field of cfg that is out of range.
//
// New refuses a client that may read from anywhere but the primary, because it would return invalidated values: a client
// with a client-side cache, and a cluster client that may read from replicas. A failover client must not be ReplicaOnly
// either, but New cannot see that.
func New(rdb Redis, cfg Config) (*Guard, error) {
	if err := errors.Join(checkClient(rdb, &cfg), cfg.check()); err != nil {
		return nil, fmt.Errorf("cacheguard: %w", err)
	}
	env := kit.Of(rdb)
	cfg = cfg.rehearsed(env).withDefaults()
	closeOwn := func() error { return nil }
	if cfg.Disabled {
		none := inprocess.NewClient()
		rdb, cfg, closeOwn = none, cfg.disabled(), none.Close
	}
	g := &Guard{rdb: rdb, cfg: cfg, life: lifecycle.New()}
	g.journal.Open(report.Config{Logger: cfg.Logger, SlowLoad: cfg.SlowLoad, Owed: g.owed, Background: g.life.Try})
	g.connect(closeOwn)
	g.assemble()
	if err := g.open(); err != nil {
		_ = g.Close() // always nil
		return nil, fmt.Errorf("cacheguard: %w", err)
	}
	if env != nil {
		rehearse(g, env)
	}
	return g, nil
}

// checkClient refuses a client that the Guard cannot use. A disabled one uses none.
func checkClient(rdb Redis, cfg *Config) error {
	if cfg.Disabled {
		return nil
	}
	return errors.Join(config.CheckPrimary(rdb), checkLocal(rdb, cfg), replicas.Check(rdb, cfg.Replicas))
}

// connect makes what carries requests to Redis, and messages back.
func (g *Guard) connect(closeOwn func() error) {
	_, g.plain = g.rdb.(*redis.Client)
	g.health = health.New(g.rdb, g.cfg.Prefix, g.cfg.RedisTimeout, g.onBreaker)
	g.serverClocks = serverclock.New(serverclock.Servers{
		Parts: g.health.Len(), PartOf: g.partOf, Time: g.serverTime, Background: g.life.Try, Clock: g.cfg.clock, Stepped: g.journal.Stepped,
	})
	g.link = link.New(g.rdb, g.cfg.RedisTimeout, g.health)
	g.acks = replicas.New(g.rdb, g.cfg.Replicas, g.cfg.RedisTimeout, g.life)
	inbox, leaveInbox := wake.Open(g.rdb, g.cfg.Prefix)
	keeper, leaveKeeper := lease.Open(g.rdb, g.cfg.RedisTimeout)
	g.inbox, g.keeper = inbox, keeper
	unhook := inbox.OnLive(g.journal.Subscribed)
	g.leave = func() {
		unhook()
		g.local.Close()
		leaveInbox()
		leaveKeeper()
		_ = closeOwn() // it has no connections
	}
}

// assemble makes the parts that refuse nothing: loads, invalidations, and what switches the cache off.
func (g *Guard) assemble() {
	g.ordinary = ordinaryPolicy(&g.cfg)
	g.bypass = g.newBypass()
	g.openServing()
	g.verifier.Delay, g.verifier.Clock, g.verifier.Life = g.cfg.Verify.Delay, g.cfg.clock, g.life
	g.detours.put(withoutRedis, g.cfg.Disabled)
	g.detours.put(lookDue, !g.cfg.Disabled)
	if g.cfg.Disabled {
		g.process.Clock = &g.clock
	}
	g.loaders.cfg, g.loaders.tasks, g.loaders.journal = &g.cfg, g.life, &g.journal
	g.notices = tier.NewNotices(g.cfg.Prefix+keys.Notices, g.health.Len())
	if _, ring := g.rdb.(*redis.Ring); !ring { // it has no local tiers
		g.repeat()
	}
	g.keys = protocol.Keyspace{
		Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Channel: g.notices.Channel, LeaseTTL: g.cfg.LeaseTTL, LoadTimeout: g.cfg.LoadTimeout,
	}
	g.invalidations, g.ofEpochs = ofKeys(g), newEpochInvalidations(g)
	g.epochs = epoch.New(epoch.Config{
		Prefix: g.cfg.Prefix, Channel: g.notices.Channel, Link: g.link, Health: g.health, Pending: g.ofEpochs, Background: g.life.Try,
		Removed: g.journal.Forgotten,
	})
	g.intents.init(g)
	g.invalidations.pending.detours = &g.detours
	g.invalidations.pending.journal, g.ofEpochs.pending.journal = &g.journal, &g.journal
}

// open makes the parts that may refuse their settings.
func (g *Guard) open() (err error) {
	lock := rwlock.Config{
		Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, TTL: g.cfg.LeaseTTL, MaxHold: g.cfg.UpdateTimeout, RedisTimeout: g.cfg.RedisTimeout,
		Replicas: g.cfg.Replicas,
	}
	if g.locks, err = rwlock.New(g.rdb, lock); err != nil {
		return err
	}
	g.together = locker.TogetherOf(g.locks)
	if g.loaders.limits, err = limit.New(g.limits()); err != nil {
		return err
	}
	return g.openLocal()
}

// limits says how many loads may run.
func (g *Guard) limits() limit.Config {
	cfg := &g.cfg
	l := limit.Config{
		MaxLoads: cfg.MaxLoads, Redis: g.rdb, Breaker: g.health.Of(g.keys.ValueKey(limit.FleetName)), Background: g.life.Try, Journal: &g.journal,
		Failed: func(err error) { _ = g.redisError("permit", limit.FleetName, err) }, // loads go on without
	}
	if !cfg.Disabled {
		l.FleetLoads = semaphore.Config{
			Prefix: cfg.Prefix, Instance: cfg.Instance, Permits: cfg.FleetLoads, TTL: cfg.LeaseTTL, RedisTimeout: cfg.RedisTimeout,
		}
	}
	return l
}

// Close cancels the running loads, releases their leases, and returns when everything that the Guard started has ended. A
// loader that ignores its context delays Close, and so do the client's time-outs when Redis hangs. Waiting calls return
// ErrClosed. A loader or hook must not call Close. Close may be called more than once, and always returns nil.
func (g *Guard) Close() error {
	if g == nil {
		return nil // New failed: there is nothing to close
	}
	g.closing.Do(func() {
		g.life.End(ErrClosed)
		g.flights.Stop() // before reads end, as a loader may be waiting for one and must find itself cancelled
		g.link.StopReading()
		g.flights.Close()
		_ = g.locks.Close() // always nil; ends the contexts of updates
		g.bypass.Close()
		g.intents.close()
		g.loaders.limits.End()
		g.life.Close(ErrClosed, nil)
		g.loaders.limits.Close()
		g.link.Close()
		g.leave()
		g.journal.Close()
	})
	return nil
}

// partOf is the part of the keyspace that a key belongs to. Parts fail one by one, and have clocks of their own.
func (g *Guard) partOf(key string) int { return g.health.Part(g.keys.ValueKey(key)) }

// isCutOff reports whether the key's part is not asked, because it did not answer.
func (g *Guard) isCutOff(key string) bool { return g.health.Breaker(g.partOf(key)).IsOpen() }

// serverTime asks the server that has the key for its time.
func (g *Guard) serverTime(key string) (time.Time, error) {
	call := g.keys.Time(g.keys.ValueKey(key))
	millis, err := bounded(context.Background(), g, func(ctx context.Context) (int64, error) {
		return call.Run(ctx, g.rdb).Int64()
	})
	return time.UnixMilli(millis), err
}

// bounded runs an operation on Redis under RedisTimeout, see package lifecycle. An operation that is given up runs on in the
// background. Only flights and begun tasks may call bounded, because Close waits for them first.
func bounded[T any](ctx context.Context, g *Guard, op func(context.Context) (T, error)) (T, error) {
	return lifecycle.Bounded(context.WithoutCancel(ctx), g.life, g.cfg.RedisTimeout, op, nil)
}
