package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/limit"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/serverclock"
	"github.com/cacheguard/go/internal/cache/testenv"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/lease"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/lifecycle"
	"github.com/cacheguard/go/internal/watch"
)

// New returns a Guard. It does no I/O and starts no goroutine: an unreachable Redis is not an error here. The error
// names every field of cfg that is out of range. New refuses a client that may read from anywhere but the primary, but
// cannot see that a failover client is ReplicaOnly.
func New(rdb Redis, cfg Config) (*Guard, error) {
	err := errors.Join(goredis.CheckPrimary(rdb), checkLocal(rdb, &cfg), send.CheckReplicas(rdb, cfg.Replicas), cfg.check())
	if err != nil {
		return nil, fmt.Errorf("cacheguard: %w", err)
	}
	env := testenv.Of(rdb)
	cfg = cfg.rehearsed(env).withDefaults()
	g := &Guard{rdb: rdb, cfg: cfg, life: lifecycle.New()}
	g.journal.Open(watch.Config{
		Logger: cfg.Logger, Timeout: cfg.RedisTimeout, Pending: g.writes.Pending, Untold: func() int { return g.notices.Refused() }, Tier: cfg.Local.on(), Background: g.life.Try,
	})
	g.observers.open(&g.journal, cfg.Observers)
	g.loaders.observers, g.loaders.kinds = &g.observers, &g.kinds
	g.countAll()
	g.connect()
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

// connect makes what carries requests to Redis, and messages back.
func (g *Guard) connect() {
	g.plain = goredis.IsSingle(g.rdb)
	g.breakers = breaker.New(g.rdb, g.cfg.Prefix, g.cfg.RedisTimeout, g.onBreaker)
	g.serverClocks = serverclock.New(serverclock.Servers{
		Parts: g.breakers.Len(), PartOf: g.partOf, Time: g.serverTime, Background: g.life.Try, Clock: g.cfg.clock, Stepped: g.onStepped,
	})
	g.breakers.Watch(g.loaders.cost.Average, g.onSlow)
	g.link = send.New(g.rdb, g.cfg.RedisTimeout, g.breakers)
	g.link.LateAfter = g.lateAfter
	inbox, leaveInbox := wake.Open(g.rdb, g.cfg.Prefix)
	keeper, leaveKeeper := lease.Open(g.rdb, g.cfg.RedisTimeout)
	g.inbox, g.keeper = inbox, keeper
	unhook := inbox.OnLive(g.journal.Subscribed)
	g.leave = func() {
		unhook()
		g.local.Close()
		leaveInbox()
		leaveKeeper()
	}
}

// assemble makes the parts that refuse nothing: loads, epochs, and what switches the cache off.
func (g *Guard) assemble() {
	g.kinds.ordinary.watched = g.journal.Kind("")
	g.ordinary = ordinaryPolicy(&g.cfg, &g.kinds.ordinary)
	ofParts := &g.kinds.parts
	*ofParts = g.ordinary
	ofParts.staleFor, ofParts.earlyRefresh, ofParts.notFound = 0, 0, nil
	g.openOff()
	g.flights.Lost = func(k flightKey) answer { return answer{err: &PanicError{Key: k.key, Value: errGoexit}} }
	g.loaders.cfg, g.loaders.tasks, g.loaders.journal = &g.cfg, g.life, &g.journal
	g.loaders.limits = limit.New(limit.Config{MaxLoads: g.cfg.MaxLoads, Limiter: g.cfg.Limiter, Asked: g.askedLimiter, Journal: &g.journal})
	g.notices = tier.NewNotices(g.cfg.Prefix+keys.Notices, g.breakers.Len())
	if !goredis.IsRing(g.rdb) { // it has no local tiers
		parts{g}.repeat()
	}
	g.keys = protocol.Keyspace{
		Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Channel: g.notices.Channel, LeaseTTL: g.cfg.LeaseTTL, LoadTimeout: g.cfg.LoadTimeout,
	}
	g.epochs = epoch.New(epoch.Config{
		Prefix: g.cfg.Prefix, Channel: g.notices.Channel, Link: g.link, Breakers: g.breakers, Pending: &g.writes, Background: g.life.Try,
		Removed: func() { g.life.Try(func() { g.tellBeside(Event{What: EventForgotten}) }) }, // stop: the Logger's
	})
}

// open makes the parts that may refuse their settings.
func (g *Guard) open() (err error) {
	if err = g.openWrites(); err != nil {
		return err
	}
	return g.openLocal()
}

// Close cancels the running loads, releases their leases, and returns nil when everything that the Guard started has
// ended. A loader that ignores its context delays it, and so do the client's time-outs when Redis hangs. Waiting calls
// return ErrClosed. Pending invalidations are tried once more, and logged if they fail. A loader or hook must not call
// it. It may be called more than once.
func (g *Guard) Close() error {
	if g == nil {
		return nil // New failed: there is nothing to close
	}
	g.closing.Do(func() {
		defer g.tellClosing()()
		g.life.End(ErrClosed)
		g.flights.Stop() // before reads end, as a loader may be waiting for one and must find itself cancelled
		g.link.StopReading()
		g.flights.Close()
		if g.locks != nil {
			_ = g.locks.Close(nil) // always nil; ends the contexts of updates
		}
		g.off.Close()
		g.writes.Close()
		g.life.Close(ErrClosed, nil)
		g.writes.Forget()
		g.link.Close()
		g.leave()
		g.journal.Close()
	})
	return nil
}

// longClose is how long Close may take until it says what it waits for.
const longClose = 5 * time.Second

// tellClosing says so, unless the Guard is closed before: that is to be called then.
func (g *Guard) tellClosing() (closed func()) {
	closing, end := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() { // owner: Close; stop: closed, which joins it
		if !lifecycle.Sleep(closing, longClose) {
			return
		}
		n, key, began := g.loaders.longest()
		attrs := []any{"loads", n}
		if n > 0 {
			attrs = append(attrs, "for", time.Since(began))
		}
		if writes := g.writes.Oldest(); writes != "" {
			attrs = append(attrs, "stands", writes)
		}
		g.tell(closing, EventClosing, key, nil, attrs...)
	})
	return func() {
		end()
		telling.Wait()
	}
}

// openLocal makes the Guard's tier, if it has one.
func (g *Guard) openLocal() (err error) {
	c := &g.cfg.Local
	if !c.on() {
		return nil
	}
	limits := tier.Limits{MaxBytes: c.MaxBytes, MaxEntries: c.MaxEntries, TTL: c.TTL, HotKeys: c.HotKeys, Clock: g.cfg.clock, MaxLag: c.MaxLag}
	if g.local, err = tier.Open(limits, g.inbox, g.notices, parts{g}, g.onHeard, g.onDropped); err != nil {
		return fmt.Errorf("Config.Local: %w", err)
	}
	g.epochs.Tier = g.local.Tier
	return nil
}

// checkLocal refuses a client whose scripts' messages do not reach every subscriber.
func checkLocal(rdb Redis, cfg *Config) error {
	if goredis.IsRing(rdb) && cfg.Local.on() {
		return errors.New("Config.Local: rdb is a Ring, on which messages of invalidations do not reach every instance")
	}
	return nil
}
