package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/watch/observe"
)

// redisError makes the error of an operation, and reports it. If it was not tried, what led to that was reported.
func (g *Guard) redisError(op, key string, err error) *RedisError {
	e := &RedisError{Op: op, Key: key, Err: err}
	if errors.Is(err, breaker.ErrOpen) {
		g.journal.RedisUntried()
		return e
	}
	g.journal.RedisFailed(op, key, err, breaker.Unavailable(err))
	g.tell(context.Background(), EventRedisError, key, e)
	return e
}

// askedLimiter reports what the Limiter said. Loads go on if that is an error.
func (g *Guard) askedLimiter(err error) {
	if err != nil {
		_ = g.redisError("permit", "Config.Limiter", err)
	} else {
		g.journal.RedisDid("permit")
	}
}

// onBreaker reports that a circuit breaker has opened or closed.
func (g *Guard) onBreaker(open bool) {
	g.tellBeside(Event{What: EventBreaker, On: open, Err: g.breakers.Why()})
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
	g.journal.Slow(g.counts.slowParts.Add(parts), median, g.loaders.cost.Average(), calls)
}

// tell tells all Observers what has happened to a key.
func (g *Guard) tell(ctx context.Context, what What, key string, err error, attrs ...any) {
	g.loaders.tell(ctx, what, key, err, attrs...)
}

// tellBeside is tell for what happens in no call, or while others wait: only the watch hears at once.
func (g *Guard) tellBeside(e Event) {
	e.Kind = g.kinds.of(e.Key).name
	g.observers.tellSome(context.Background(), g.observers.all[:1], e)
	g.tellOthers(e)
}

func (g *Guard) tellOthers(e Event) {
	if g.observers.haveOthers() && g.observers.beside.add(e) {
		g.life.Try(g.observers.tellBeside) // stop: the Observers'
	}
}

// onStepped reports that a server's clock has stepped by that much.
func (g *Guard) onStepped(key string, by time.Duration) {
	g.tellBeside(Event{What: EventStepped, Key: key, Took: by, Attrs: []any{"by", by}})
}

// onHeard tells the Observers that something was invalidated.
func (g *Guard) onHeard(n tier.Notice) {
	if !g.observers.haveOthers() {
		return
	}
	e := Event{What: EventInvalidated}
	switch kind, isKind := epoch.Kind(n.Key); {
	case !n.Many:
		e.Key, e.Kind = n.Key, g.kinds.of(n.Key).name
	case isKind:
		e.Kind = kind
	case n.Key != epoch.All:
		e.Attrs = []any{"tag", epoch.Shown(n.Key)}
	}
	g.tellOthers(e)
}

// onDropped reports that the local tier was emptied of that many entries, as messages may have been missed.
func (g *Guard) onDropped(entries int) {
	g.journal.Missed()
	if entries > 0 {
		g.life.Try(func() { g.tellBeside(Event{What: EventDropped, Attrs: []any{"entries", entries}}) }) // stop: the Logger's
	}
}

// onStale reports a value that is served past its TTL.
func (g *Guard) onStale(key string, e protocol.Entry) {
	g.tellStale(key, g.serverClocks.Age(key, e.Written)-e.Fresh)
}

func (g *Guard) tellStale(key string, past time.Duration) {
	g.observers.tell(context.Background(), Event{What: EventStale, Key: key, Kind: g.kinds.of(key).name, Took: past})
}

// tellEnd reports a load, once, and notes whether it failed, unless nobody waits for it any more: then its error says
// nothing about the source.
func (l *loaders) tellEnd(ctx context.Context, j *load, load *loading, took time.Duration, err error) {
	if load.judged.Swap(true) {
		return
	}
	l.journal.View().Loaded(j.policy.kind.name, took, failed(err))
	if c := j.policy.kind.counts; c != nil {
		c.Counts.Add(loads)
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
	case failed(err):
		j.policy.kind.watched.Loaded(err, l.cfg.textOf(err))
	case !errors.Is(err, context.Canceled):
		j.policy.kind.watched.Loaded(nil, "")
	}
	l.observers.tell(context.Background(), Event{What: EventLoad, Key: j.key, Kind: j.policy.kind.name, Took: took, Err: err})
}

// onLoad notes how long a loader took that has returned.
func (l *loaders) onLoad(j *load, took time.Duration, err error) {
	if err == nil {
		l.cost.Took(took)
		j.policy.kind.cost.Took(took)
	}
	if limit := l.cfg.SlowLoad; limit > 0 && took >= limit {
		l.tell(context.Background(), EventSlowLoad, j.key, err, "took", took)
	}
}

// tell is the Guard's, of a load.
func (l *loaders) tell(ctx context.Context, what What, key string, err error, attrs ...any) {
	l.observers.tell(ctx, Event{What: what, Key: key, Kind: l.kinds.of(key).name, Err: err, Attrs: attrs})
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

// outcomeOf is what an answer is counted as: its Outcome, or what there is without one.
func outcomeOf(how Outcome, err error) Outcome {
	switch {
	case err == nil && how != "", errors.Is(err, ErrNotFound) && how != "":
		return how
	case errors.Is(err, ErrNotCached):
		return "missed"
	case errors.Is(err, context.Canceled):
		return "left"
	}
	return "error"
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
	return observe.Guard{
		Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Numbers: &g.counts.List, Viewer: &g.journal.Viewer,
		Caches: func() (all []observe.Cache) {
			for _, k := range g.kinds.all() {
				all = append(all, observe.Cache{Name: k.name, Failing: k.watched.Now()})
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
		Redis: func(ctx context.Context, args ...any) (any, error) {
			cmd := redis.NewCmd(ctx, args...)
			err := g.rdb.Process(ctx, cmd)
			return cmd.Val(), err
		},
		Server: goredis.Where(g.rdb),
	}
}

// answered counts an answer, and reports it, to a call that began at start; zero: nobody is to know.
func (g *Guard) answered(ctx context.Context, p *policy, key string, how Outcome, start time.Time, err error) {
	if c := p.kind.counts; c != nil && how != "" {
		c.answered(how)
	}
	if !start.IsZero() {
		g.observers.tell(ctx, Event{What: EventGet, Key: key, Kind: p.kind.name, Outcome: how, Took: time.Since(start), Err: err})
	}
}
