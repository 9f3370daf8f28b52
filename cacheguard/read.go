package cacheguard

import (
	"bytes"
	"context"
	"errors"
	"math"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/cache/write"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/slab"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// wanted is a key that a call wants: it is marked, asked for, taken, and judged.
type wanted[V any] struct {
	key      string
	valueKey string
	past     write.Past
	mark     tier.Mark
	epochs   epoch.Reading
	read     *send.Read
	err      error // it was waited for, in vain
	result   *readResult[V]

	decision[V]
}

// mark notes how things are before the key is read.
func (q *query[V]) mark(r *wanted[V]) {
	r.mark = q.guard.local.Mark(r.key)
	q.guard.epochs.BeginIn(&r.epochs, r.key, r.valueKey, q.spec.policy.kind.name, q.spec.known)
}

// take decodes what was read, and begins to judge it, without waiting for that.
func (q *query[V]) take(ctx context.Context, r *wanted[V], room *slab.Slab[readResult[V]]) {
	r.epochs.Take(r.read)
	r.result = decodeRead(q.guard, r.key, q.spec.policy, r.read, room)
	if r.result.isJudged() {
		r.epochs.Compare(ctx, r.result.entry.Stamp)
	}
}

// judge waits for the judgement, and says what the call does then.
func (q *query[V]) judge(ctx context.Context, r *wanted[V]) error {
	redisErr, err := r.confirm(ctx, q.guard, &q.spec)
	if err == nil {
		r.decision = r.decide(q.guard, &q.spec, redisErr)
	}
	return err
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

// confirm waits for what the epochs say of the result: revoked, if one of them is over; unreachable, if Redis did not
// answer. Only then does the local tier keep it.
func (r *wanted[V]) confirm(ctx context.Context, g *Guard, spec *loadSpec[V]) (redisErr, err error) {
	got := r.result
	if !got.isJudged() {
		return r.read.Err, nil
	}
	switch holds, redisErr, err := r.epochs.Holds(ctx); {
	case err != nil:
		return nil, err
	case redisErr != nil:
		r.result = &readResult[V]{state: unreachable}
		return redisErr, nil
	case !holds && spec.despiteTags != nil && got.value != nil && spec.despiteTags(*got.value):
		return nil, nil
	case !holds:
		r.result = &readResult[V]{state: revoked, entry: got.entry}
		return nil, nil
	}
	if g.local != nil && !spec.policy.noLocal && !got.entry.Ends && !r.epochs.Ends && got.kept.CompareAndSwap(false, true) {
		keep(g, r.key, spec.policy, r.mark, r.read, got, r.epochs.Under)
	}
	return nil, nil
}

// replaced is what a refresh replaces: the entry, or its beginning, and how long its load took.
func (r *wanted[V]) replaced() (raw []byte, took time.Duration) {
	if r.drawn != nil {
		return r.drawn.Head, r.drawn.Took
	}
	return r.read.Raw, r.result.entry.Took
}

// aged reports whether the value seems too old.
func (r *readResult[V]) aged() bool { return r.state == stale || r.state == expired }

// decodeRead decodes what was read, and tells its state. The calls that share the read and want the same type
// share the result as well.
func decodeRead[V any](g *Guard, key string, p *policy, read *send.Read, room *slab.Slab[readResult[V]]) *readResult[V] {
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
		g.tellBeside(Event{What: EventDamaged, Key: key, Err: err}) // others share the read
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
	p.kind.cost.Read(r.entry.Took)
	g.loaders.cost.Read(r.entry.Took)
	r.state, r.how = g.freshness(key, p, r.entry), Hit
	if r.state == stale {
		r.how = Stale
	}
	return r
}

// decode returns the entry and its value, which is nil for remembered absence.
func (j *load) decode(cfg *Config, raw []byte) (protocol.Entry, any, error) {
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

// undecodable reports an entry that is intact but cannot be decoded, and returns its state for the reader: alienEntry
// if it is to stay, else unusable.
func (g *Guard) undecodable(key string, p *policy, e protocol.Entry, err error) state {
	what, is := EventDamaged, unusable
	switch {
	case !p.isNamed() && errors.Is(err, errOfAKind):
		what, is = EventAlien, alienEntry
	case p.isNamed() && !p.kind.aliens.MayReplace(g.serverClocks.Age(key, e.Written)):
		what, is = EventUnread, alienEntry
	}
	g.tellBeside(Event{What: what, Key: key, Err: err, Attrs: p.logAttrs()})
	return is
}

// readFailed is called when the value at the key could not be read. If it took too long, because the value is larger
// than any entry, the next read would, too: so it is removed, in the background, one at a time.
func (g *Guard) readFailed(valueKey string, err error) {
	if !errors.Is(err, send.ErrTimeout) || errors.Is(err, errLate) || g.cfg.MaxValueBytes == off {
		return
	}
	g.life.TryAtMost(1, &g.dropping, func() { // stop: RedisTimeout
		_ = lifecycle.Within(context.Background(), g.life, g.cfg.RedisTimeout, func(ctx context.Context) error {
			return script.RunAll(ctx, g.rdb, []*script.Call{g.keys.DropLarge(valueKey, g.cfg.packing().Largest())})[0].Err()
		}) // the next read that fails tries again
	})
}

// freshness tells a fresh entry from a stale one, and from one that XFetch draws for an early refresh. An entry that
// does not say how long it is fresh is fresh until Redis expires it.
func (g *Guard) freshness(key string, p *policy, e protocol.Entry) state {
	if e.Fresh == 0 {
		return fresh
	}
	age := g.serverClocks.Age(key, e.Written)
	switch {
	case age >= e.Fresh && p.staleFor > 0:
		return stale
	case age >= e.Fresh:
		return expired // another Guard would still serve it
	case p.earlyRefresh > 0 && age >= e.Fresh-xfetchGap(e.Took, p.earlyRefresh):
		return ageing
	}
	return fresh
}

// xfetchGap draws how long before its end an entry is to be replaced: took * beta * -ln(rand), after Vattani,
// Chierichetti and Lowenstein (see Config.EarlyRefresh).
func xfetchGap(took time.Duration, beta float64) time.Duration {
	return time.Duration(float64(took) * beta * -math.Log(1-mathrand.Float64()))
}

// keep puts what was read into the tier. It skips an entry that does not say how long it is fresh, as Guards without a
// tier write them: that may be gone from Redis the next moment.
func keep[V any](g *Guard, key string, p *policy, mark tier.Mark, read *send.Read, r *readResult[V], under []tier.NameMark) {
	if g.local == nil || r.entry.Fresh == 0 || r.state != fresh && r.state != ageing {
		return
	}
	left := r.entry.Fresh - max(g.serverClocks.Age(key, r.entry.Written), 0) // below 0 if the clocks disagree
	size := max(len(read.Raw), len(r.entry.Payload))                         // a compressed entry is kept decompressed
	item, value, usable := new(tier.Item), any(nil), left
	if r.value != nil {
		k := &kept[V]{value: *r.value}
		item, value, usable = &k.Item, &k.value, left+p.staleFor
	}
	if item.Named = p.isNamed(); p.earlyRefresh > 0 {
		item.Early = &tier.Early{Took: r.entry.Took, Head: bytes.Clone(read.Raw[:protocol.HeaderLen])}
	}
	g.local.Keep(key, mark, item, value, size, left, usable, under...)
}

// kept is an item of the tier, and beside it its value.
type kept[V any] struct {
	tier.Item
	value V
}
