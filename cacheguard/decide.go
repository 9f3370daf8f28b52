package cacheguard

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/slab"
	"github.com/cacheguard/go/internal/tier"
)

// state says what a read found.
type state int

const (
	missing     state = iota // nothing
	fresh                    // a value, or remembered absence
	ageing                   // fresh, and drawn to be replaced early
	stale                    // a value past its TTL, within StaleFor
	expired                  // a value past its TTL, which this Guard does not serve
	revoked                  // something that was made under an epoch that is over: nobody may see it
	unusable                 // something that is no entry, or not of this type
	alienEntry               // what another version of the program stored, and this one cannot decode, or what belongs to another kind
	unreachable              // Redis gave no answer
)

// action is what a call does after a read.
type action int

const (
	doServe     action = iota // return what was found
	doRefresh                 // return what was found, and replace it in the background
	doRebuild                 // load through the lease
	doBypass                  // load without Redis
	doLoadApart               // load, and leave what is stored as it is
)

// decide is the table of Get, GetMany and Fetch: it says which state leads to which action.
func decide(s state) action {
	switch s {
	case fresh:
		return doServe
	case ageing, stale:
		return doRefresh
	case unreachable:
		return doBypass
	case alienEntry:
		return doLoadApart
	case missing, expired, revoked, unusable:
	}
	return doRebuild
}

// decision is an action and what it needs.
type decision[V any] struct {
	action   action
	found[V]             // doServe, doRefresh: the answer; doRebuild: what is replaced, nil if nobody can read it
	aged     bool        // doRefresh, doRebuild: the value seems too old
	reason   *RedisError // doBypass: why Redis cannot be used
}

// decide judges what was read, as the caller sees it. It reports a stale value that is served, and a failed read.
func (s loadSpec[V]) decide(g *Guard, key string, r *readResult[V], readErr error) decision[V] {
	seenAs, answer := s.assess(r)
	d := decision[V]{action: decide(seenAs), found: answer, aged: s.judge == nil && r.aged()}
	switch d.action {
	case doRefresh:
		if s.judge == nil && r.state == stale && !s.isPatient(g) {
			g.onStale(key, r.entry)
		}
	case doBypass:
		d.reason = g.redisError("get", key, readErr)
		g.readFailed(s.valueKeyOf(g, key), readErr)
		if old, ok := s.staleFromLocal(g, key); ok {
			d.action, d.found = doServe, old
		}
	case doServe, doRebuild, doLoadApart:
	}
	return d
}

// found is an answer: a value, or remembered absence.
type found[V any] struct {
	value *V // nil: absence
	how   Outcome
}

func (f found[V]) result() (v V, how Outcome, err error) {
	if f.value == nil {
		return v, Negative, ErrNotFound
	}
	return *f.value, f.how, nil
}

// readResult is what a read found, decoded as the type that its readers want.
type readResult[V any] struct {
	found[V] // when fresh, ageing or stale
	state    state
	entry    protocol.Entry
	kind     *kind       // whose it is read as
	room     V           // for the value
	kept     atomic.Bool // in the local tier
}

// isJudged reports whether the epochs say if what was found is valid.
func (r *readResult[V]) isJudged() bool {
	switch r.state {
	case missing, unusable, alienEntry, unreachable:
		return false
	case fresh, ageing, stale, expired, revoked:
	}
	return true
}

// compare begins to judge it, and does not wait.
func (r *readResult[V]) compare(ctx context.Context, epochs *epoch.Reading) {
	if r.isJudged() {
		epochs.Compare(ctx, r.entry.Stamp)
	}
}

// confirmed returns what was read, as the epochs judge it: revoked, if one of them is over; unreachable, if Redis did not answer. Only
// then does the local tier keep it.
func confirmed[V any](ctx context.Context, g *Guard, key string, mark tier.Mark, read *link.Read, r *readResult[V], epochs *epoch.Reading,
	spec loadSpec[V],
) (_ *readResult[V], redisErr, err error) {
	if !r.isJudged() {
		return r, read.Err, nil
	}
	switch holds, redisErr, err := epochs.Holds(ctx); {
	case err != nil:
		return r, nil, err
	case redisErr != nil:
		return &readResult[V]{state: unreachable}, redisErr, nil
	case !holds && spec.despiteTags != nil && r.value != nil && spec.despiteTags(*r.value):
		return r, nil, nil
	case !holds:
		return &readResult[V]{state: revoked, entry: r.entry}, nil, nil
	}
	if g.local != nil && !r.entry.Ends && !epochs.Ends && r.kept.CompareAndSwap(false, true) {
		keep(g, key, spec.policyOf(g), mark, read, r, epochs.Under)
	}
	return r, nil, nil
}

// aged reports whether the value seems too old.
func (r *readResult[V]) aged() bool { return r.state == stale || r.state == expired }

// decodeRead decodes what was read, and tells its state. The calls that share the read and want the same type
// share the result as well.
func decodeRead[V any](g *Guard, key string, p *policy, read *link.Read, room *slab.Slab[readResult[V]]) *readResult[V] {
	if read.Err != nil {
		return &readResult[V]{state: unreachable}
	}
	if read.Raw == nil {
		return &readResult[V]{state: missing}
	}
	r, ok := read.Share.Make(func() any {
		return decodeAs(g, key, p, read.Raw, room.New())
	}).(*readResult[V])
	if !ok || r.kind != p.kind {
		r = decodeAs(g, key, p, read.Raw, room.New()) // shared with callers that want another type, or kind
	}
	return r
}

func decodeAs[V any](g *Guard, key string, p *policy, raw []byte, r *readResult[V]) *readResult[V] {
	r.kind = p.kind
	var err error
	if r.entry, err = g.cfg.packing().Decode(key, raw); err != nil {
		g.onDamaged(key, err)
		return &readResult[V]{state: unusable, kind: p.kind}
	}
	if err := p.check(&r.entry); err != nil {
		return &readResult[V]{state: g.undecodable(key, p, r.entry, err), kind: p.kind}
	}
	if r.entry.Kind != protocol.Absent {
		r.value = &r.room
		if err := protocol.DecodeValue(p.codec, r.entry, r.value); err != nil {
			return &readResult[V]{state: g.undecodable(key, p, r.entry, err), kind: p.kind}
		}
	}
	r.state, r.how = g.freshness(key, p, r.entry), Hit
	if r.state == stale {
		r.how = Stale
	}
	return r
}

// decode returns the entry and its value, which is nil for remembered absence.
func (j *job) decode(cfg *Config, raw []byte) (protocol.Entry, any, error) {
	e, err := cfg.packing().Decode(j.key, raw)
	if err == nil {
		err = j.policy.check(&e)
	}
	if err != nil || e.Kind == protocol.Absent {
		return e, nil, err
	}
	value, err := j.shape.Decode(j.policy.codec, e)
	return e, value, err
}

// undecodable reports an entry that is intact but cannot be decoded, and returns its state for the reader: alienEntry if it is
// to stay, else unusable.
func (g *Guard) undecodable(key string, p *policy, e protocol.Entry, err error) state {
	k := p.kind
	if k == nil && errors.Is(err, errOfAKind) {
		return alienEntry
	}
	if k == nil {
		g.onDamaged(key, err)
		return unusable
	}
	g.cfg.Hooks.damaged(key, err) // the line below names the Cache
	k.unread.Log(context.Background(), g.cfg.Logger, slog.LevelWarn, "entry cannot be decoded", key,
		p.logAttrs("error", err)...)
	if k.aliens.MayReplace(g.serverClocks.Age(key, e.Written)) {
		return unusable
	}
	return alienEntry
}

// readFailed is called when the value at the key could not be read. If it took too long, because the value is larger than any entry, the
// next read would, too: so it is removed, in the background, one at a time.
func (g *Guard) readFailed(valueKey string, err error) {
	if !errors.Is(err, link.ErrTimeout) || g.cfg.MaxValueBytes == off || !g.dropping.CompareAndSwap(false, true) {
		return
	}
	begun := g.life.Try(func() { // stop: RedisTimeout
		defer g.dropping.Store(false)
		_, _ = lifecycle.Bounded(context.Background(), g.life, g.cfg.RedisTimeout, func(ctx context.Context) (any, error) {
			return script.RunAll(ctx, g.rdb, []*script.Call{g.keys.DropLarge(valueKey, g.cfg.packing().Largest())})[0].Result()
		}, nil) // the next read that fails tries again
	})
	if !begun {
		g.dropping.Store(false)
	}
}
