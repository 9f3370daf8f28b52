package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/report"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/run/observe"
)

// The Guard reports to its journal first, for the Logger and package admin, and then to Config.Hooks.

// redisError makes the error of an operation, and reports it. If it was not tried, what led to that was reported.
func (g *Guard) redisError(op, key string, err error) *RedisError {
	e := &RedisError{Op: op, Key: key, Err: err}
	if g.journal.RedisFailed(op, key, err) && g.cfg.Hooks.OnRedisError != nil {
		g.cfg.Hooks.OnRedisError(e)
	}
	return e
}

// onBreaker reports that a circuit breaker has opened or closed.
func (g *Guard) onBreaker(open bool) {
	g.journal.Breaker(open)
	if g.cfg.Hooks.OnBreaker != nil {
		g.cfg.Hooks.OnBreaker(open)
	}
	if open {
		g.loaders.limits.BreakerOpened()
	}
}

// onSlow reports that a part of the keyspace has become slow, or is so no more.
func (g *Guard) onSlow(slow bool) {
	parts := int64(1)
	if !slow {
		parts = -1
	}
	median := time.Duration(0)
	for part := range g.breakers.Len() {
		median = max(median, g.breakers.Breaker(part).Recent())
	}
	calls := "wait for it"
	if g.loadsBeside() {
		calls = "load first"
	}
	g.journal.Slow(g.slowParts.Add(parts), report.Slowness{
		Redis: median, Loads: g.loaders.cost.Average(), Calls: calls,
	})
}

// tell tells everybody what has happened to a key: the Logger and Stats, package admin, and Hooks.
func (g *Guard) tell(ctx context.Context, what report.What, key string, err error, attrs ...any) {
	g.tellBy(ctx, nil, what, key, err, attrs...)
}

// tellBy is tell with a Throttle of the caller's own for the log; nil: that of the event.
func (g *Guard) tellBy(ctx context.Context, by *report.Throttle, what report.What, key string, err error, attrs ...any) {
	g.journal.TellBy(ctx, by, what, key, err, attrs...)
	if o := g.journal.Observer.Load(); o != nil {
		o.Happened(&g.kinds.of(key).tally, what)
	}
	g.cfg.Hooks.tell(what, key, err)
}

// onStepped reports that a server's clock has stepped by that much.
func (g *Guard) onStepped(key string, by time.Duration) {
	once := &g.stepped[0]
	if by < 0 { // a step back soon after one is news
		once = &g.stepped[1]
	}
	g.tellBy(context.Background(), once, report.Stepped, key, nil, "by", by)
}

// onDropped reports that the local tier was emptied of that many entries, as messages may have been missed.
func (g *Guard) onDropped(entries int) {
	g.journal.Missed()
	if entries > 0 {
		g.tell(context.Background(), report.Dropped, "", nil, "entries", entries)
	}
}

// onStale reports a value that is served past its TTL.
func (g *Guard) onStale(key string, e protocol.Entry) {
	if g.cfg.Hooks.OnStale != nil {
		g.cfg.Hooks.OnStale(key, g.serverClocks.Age(key, e.Written)-e.Fresh)
	}
}

// judge counts a load, once, and notes whether it failed, unless nobody waits for it any more: then its error says nothing about the source.
func (l *loaders) judge(ctx context.Context, j *load, load *loading, took time.Duration, err error) {
	if load.judged.Swap(true) {
		return
	}
	if o := l.journal.Observer.Load(); o != nil {
		o.Loaded(&j.policy.kind.tally, took, failed(err))
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
	case failed(err):
		j.policy.kind.failing.Loaded(err, l.cfg.textOf(err))
	case !errors.Is(err, context.Canceled):
		j.policy.kind.failing.Loaded(nil, "")
	}
}

// onLoad reports a run of a loader.
func (l *loaders) onLoad(j *load, took time.Duration, err error) {
	if err == nil {
		l.cost.Took(took)
		j.policy.kind.cost.Took(took)
	}
	if limit := l.cfg.SlowLoad; limit > 0 && took >= limit {
		l.journal.Tell(context.Background(), report.Slow, j.key, err, "took", took)
	}
	if l.cfg.Hooks.OnLoad != nil {
		l.cfg.Hooks.OnLoad(j.key, took, err)
	}
}

// learn notes what a load had: its tags, and its key, unless that is of a Cache, which is known.
func (l *loaders) learn(j *load, tags []string) {
	l.journal.Tags.Had(j.known...)
	l.journal.Tags.Had(tags...)
	if j.policy.isNamed() {
		l.journal.Keys.Had()
	} else {
		l.journal.Keys.Had(j.key)
	}
}

// named counts what is invalidated, or announced to be, and that no Cache or load has.
func (g *Guard) named(ctx context.Context, keys, tags []string) {
	g.journal.Tags.Invalidated(ctx, tags, nil)
	g.journal.Keys.Invalidated(ctx, keys, func(key string) bool {
		name, _, _ := strings.Cut(key, ":")
		return g.kinds.byName(name) != nil
	})
}

// words are what answers are counted as.
var words = []string{
	string(Hit), string(Local), string(Stale), string(Negative), string(Loaded), string(Shared), string(Bypassed), "error", "missed", "left",
}

// wordOf is the place of an answer in words.
func wordOf(how Outcome, err error) int {
	if err != nil {
		switch {
		case errors.Is(err, ErrNotFound) && how != "":
		case errors.Is(err, ErrNotCached):
			return 8
		case errors.Is(err, context.Canceled):
			return 9
		default:
			return 7
		}
	}
	if i := slices.Index(words, string(how)); i >= 0 {
		return i
	}
	return 7
}

// troubles adds the oldest intent or update that stands to the troubles of the journal.
func (g *Guard) troubles() observe.Troubles {
	t := g.journal.Troubles()
	t.Stands = g.writes.Oldest()
	return t
}

// observed is for package admin.
func (g *Guard) observed() observe.Guard {
	if g == nil {
		return observe.Guard{}
	}
	o := g.journal.Observe()
	seen := observe.Guard{
		Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Words: words, Loads: &o.Loads, Hot: o.Hot,
		Caches: func() (all []observe.Tallied) { // first keys without a Cache, then each Cache, by name
			for _, k := range g.kinds.all() {
				t := k.tally.Read(k.name)
				t.Failing = k.failing.Now()
				all = append(all, t)
			}
			return all
		},
		Troubles: g.troubles, Happened: g.journal.Happened, Tags: &g.journal.Tags, Keys: &g.journal.Keys,
		InvalidateCache: func(ctx context.Context, name string) error {
			if g.kinds.byName(name) == nil {
				return fmt.Errorf("cacheguard: there is no Cache %q", name)
			}
			return g.invalidateNames(ctx, []string{epoch.OfKind(name)})
		},
	}
	if !g.cfg.Disabled {
		seen.Redis = func(ctx context.Context, args ...any) (any, error) {
			cmd := redis.NewCmd(ctx, args...)
			err := g.rdb.Process(ctx, cmd)
			return cmd.Val(), err
		}
		seen.Server = goredis.Where(g.rdb)
	}
	return seen
}
