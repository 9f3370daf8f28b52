package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
)

// parts are the parts of the keyspace for the tier.
type parts struct{ guard *Guard }

// PartOf is the part of a key.
func (p parts) PartOf(key string) int { return p.guard.partOf(key) }

// AskEcho has a node of the part publish an echo.
func (p parts) AskEcho(part int, echo func(key string) *script.Call) {
	key := p.guard.breakers.Key(part)
	_, err := p.guard.link.Do(context.Background(), key, &send.Call{Script: echo(key), Rank: send.Ordinary})
	_, refused := script.Answer(err)
	switch journal := &p.guard.journal; {
	case refused: // else, what comes back is the answer
		journal.Subscribed(false, p.guard.redisError("echo", "", err))
	case err == nil && p.guard.inbox.Live():
		journal.RedisDid("echo")
		journal.Subscribed(true, nil)
	}
}

// repeat has the numbers of notices repeated that are made from now on.
func (p parts) repeat() {
	g := p.guard
	g.notices.Begin = func() {
		g.life.Try(func() { g.notices.Repeat(g.life.Ending, p.say) }) // stop: the end of the Guard, or its last message
	}
	g.notices.Changed = g.journal.UntoldChanged
}

// say sends a message to local tiers. If Redis does not answer, their subscriptions end, or they hear a later message.
func (p parts) say(part int, message string) (refused, answered bool) {
	g := p.guard
	if g.breakers.Breaker(part).IsOpen() {
		return false, false
	}
	call := g.keys.Say(g.breakers.Key(part), message)
	_, err := bounded(context.Background(), g, func(ctx context.Context) (any, error) {
		err := call.Run(ctx, g.rdb).Err()
		if _, refused := script.Answer(err); refused { // by the server, as a script may not, or to this user
			err = script.Send(ctx, g.rdb, "publish", g.notices.Channel, message).Err()
		}
		return nil, err
	})
	if _, refused = script.Answer(err); refused {
		_ = g.redisError("notice", "", err) // it is told
	} else if err == nil {
		g.journal.RedisDid("notice")
	}
	return refused, refused || err == nil
}

// fromItem returns an item of the tier as an answer to calls of the policy. As in Redis, an entry of a Cache is none of
// the function Get, and the other way round.
func fromItem[V any](item *tier.Item, p *policy, how Outcome) (f found[V], ok bool) {
	if item == nil || item.Named != p.isNamed() {
		return f, false
	}
	if item.Value != nil {
		if f.value, ok = item.Value.(*V); !ok {
			return f, false // another type
		}
	}
	f.how = how
	return f, true
}

// usesLocal reports whether the call may have its answer from the local tier.
func (s *loadSpec[V]) usesLocal(g *Guard) bool {
	return g.local != nil && !s.skipLocal && !s.policy.noLocal
}

// fromLocal returns what the local tier has, if it may be served.
func (s *loadSpec[V]) fromLocal(g *Guard, key string) (f found[V], ok bool) {
	if !s.usesLocal(g) {
		return f, false
	}
	item := g.local.Get(key)
	f, ok = fromItem[V](item, s.policy, Local)
	switch {
	case !ok:
	case s.judge != nil && f.value != nil:
		ok = s.judge(*f.value) == Serve // otherwise read it from Redis, where it may have been replaced
	case item.Early != nil && !s.cacheOnly && g.local.Left(item) <= xfetchGap(item.Early.Took, s.policy.earlyRefresh):
		f.drawn = item.Early
	}
	return f, ok
}

// tryLocal returns what the local tier has, if the call may use the cache for the key.
func (s *loadSpec[V]) tryLocal(g *Guard, key string, w *way) (f found[V], ok bool) {
	if w.reason != nil || w.past.Any() {
		return f, false
	}
	return s.fromLocal(g, key)
}

// staleFromLocal returns what the local tier has when Redis does not answer, as a stale value, if stale
// values may be served.
func (s *loadSpec[V]) staleFromLocal(g *Guard, key string) (f found[V], ok bool) {
	if !s.usesLocal(g) || s.policy.staleFor == 0 {
		return f, false
	}
	item := g.local.GetAnyway(key)
	f, ok = fromItem[V](item, s.policy, Stale)
	switch {
	case !ok || f.value == nil:
	case s.judge != nil:
		ok = s.judge(*f.value) != Replace
	default:
		g.tellStale(key, max(-g.local.Left(item), 0))
	}
	return f, ok
}

// fillLocal waits for a read whose call has its answer from a load beside Redis, which the local tier cannot keep: the
// keys that are asked for most would be loaded again and again.
func (s *loadSpec[V]) fillLocal(g *Guard, r wanted[V], read *send.Read) {
	spec := *s
	if !s.usesLocal(g) || read != r.read || !g.life.TryAtMost(mostFilling, &g.filling, func() { // stop: RedisTimeout
		ctx, cancel := context.WithTimeout(context.Background(), g.cfg.RedisTimeout)
		defer cancel()
		q := query[V]{guard: g, spec: spec}
		if r.read.Wait(ctx) == nil {
			q.take(ctx, &r, nil)
			_, _ = r.confirm(ctx, g, &q.spec) // the tier has it now, or Redis has not, or does not answer
		}
	}) {
		read.Leave()
	}
}

// mostFilling is how many reads are waited for at a time for the local tier alone.
const mostFilling = 64
