package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/slab"
)

// readKeys reads the keys, and returns the keys that must be loaded. It refreshes stale ones in the background.
func (m *many[V]) readKeys(ctx context.Context, keys []string) (toLoad []wanted) {
	keys, toLoad = m.readable(ctx, keys)
	keys = m.takeLocal(ctx, keys)
	all, questions := make([]beingRead[V], len(keys)), make([]send.Question, len(keys))
	for i, key := range keys {
		b := &all[i]
		b.mark = m.guard.local.Mark(key)
		questions[i].Key = m.spec.valueKeyOf(m.guard, key)
		m.guard.epochs.BeginIn(&b.epochs, key, questions[i].Key, m.spec.kind, m.spec.known)
		questions[i].Beside = b.epochs.Keys()
	}
	room := &slab.Slab[readResult[V]]{Left: len(keys)}
	reads := m.guard.link.AskAll(ctx, questions)
	for i, raced := 0, false; i < len(keys); i++ {
		if !raced && m.isLate(ctx, keys[i], reads[i]) {
			raced = true
			if m.readBeside(ctx, keys[i:], reads[i:], all[i:]) {
				keys = keys[:i] // the others have their answers
				break
			}
		}
		m.decoded(ctx, keys[i], reads[i], &all[i], room)
	}
	var old []wanted
	for i, key := range keys {
		b := &all[i]
		switch w := (wanted{key: key}); {
		case m.confirm(ctx, key, b) != nil:
			m.fail(ctx, key, "", unanswered(ctx, key, b.err))
		case m.act(ctx, b, &w):
			toLoad = append(toLoad, w)
		case w.mode == background:
			old = append(old, w)
		}
	}
	m.refreshAll(ctx, old)
	return toLoad
}

// beingRead is a key that is being read, with the epochs that judge it.
type beingRead[V any] struct {
	read     *send.Read
	mark     tier.Mark
	result   *readResult[V]
	epochs   epoch.Reading
	redisErr error
	err      error
}

// decoded waits for the read of a key, and begins to judge it, without waiting for that.
func (m *many[V]) decoded(ctx context.Context, key string, read *send.Read, b *beingRead[V], room *slab.Slab[readResult[V]]) {
	if b.read = read; read == nil {
		b.err = send.ErrClosed
	}
	if b.err != nil { // it was waited for already
		return
	}
	if b.err = read.Wait(ctx); b.err == nil {
		b.epochs.Take(read)
		b.result = decodeRead[V](m.guard, key, m.spec.policyOf(m.guard), read, room)
		b.result.compare(ctx, &b.epochs)
	}
}

// confirm waits for the judgement.
func (m *many[V]) confirm(ctx context.Context, key string, b *beingRead[V]) error {
	if b.err == nil {
		b.result, b.redisErr, b.err = confirmed(ctx, m.guard, key, b.mark, b.read, b.result, &b.epochs, m.spec)
	}
	return b.err
}

// readable returns the keys that may be read, and the others as far as they must be loaded. It checks before anything
// is read: a value that was read while an invalidation was pending is old, even if that has been sent by the time of
// the reply.
func (m *many[V]) readable(ctx context.Context, keys []string) (readable []string, toLoad []wanted) {
	readable = make([]string, 0, len(keys))
	for _, key := range keys {
		w, reason, within := wanted{key: key}, m.guard.mustBypass(ctx, key), pastOf(ctx, m.guard, key)
		switch {
		case reason == nil && within.Named != nil:
			w.mode, w.how = direct, Loaded
			toLoad = append(toLoad, w)
		case reason == nil:
			readable = append(readable, key)
		case m.bypass(ctx, &w, reason):
			toLoad = append(toLoad, w)
		}
	}
	return readable, toLoad
}

// takeLocal answers from the local tier, and returns the other keys.
func (m *many[V]) takeLocal(ctx context.Context, keys []string) (others []string) {
	if m.guard.local == nil {
		return keys
	}
	for _, key := range keys {
		within := pastOf(ctx, m.guard, key)
		if kept, ok := m.spec.fromLocal(m.guard, key); ok && !within.Any() {
			m.answer(ctx, key, kept)
		} else {
			others = append(others, key)
		}
	}
	return others
}

// act does what decide says. It reports whether the key must be loaded, and w says how.
func (m *many[V]) act(ctx context.Context, b *beingRead[V], w *wanted) bool {
	d := m.spec.decide(m.guard, w.key, b.result, b.redisErr)
	w.unfit, w.aged, w.took, w.epochs = b.read.Raw, d.aged, b.result.entry.Took, &b.epochs
	within := pastOf(ctx, m.guard, w.key)
	if within.Must(b.result.state != unreachable, b.result.entry.Stamp) {
		w.mode, w.how = direct, Loaded
		return true
	}
	switch d.action {
	case doServe:
		m.answer(ctx, w.key, d.found)
	case doRefresh:
		w.mode = background
		m.answer(ctx, w.key, d.found)
	case doRebuild:
		if w.mode = filled; m.spec.spare {
			w.mode = lowly
		}
		return true
	case doLoadApart:
		return m.bypass(ctx, w, nil)
	case doBypass:
		return m.bypass(ctx, w, d.reason)
	}
	return false
}

// answer takes what was found.
func (m *many[V]) answer(ctx context.Context, key string, f found[V]) {
	v, how, err := f.result()
	m.take(ctx, key, v, how, err, err != nil)
}

// bypass marks the key to be loaded without the cache, unless the call may not do that.
func (m *many[V]) bypass(ctx context.Context, w *wanted, reason *RedisError) bool {
	if err := m.spec.refusal(m.guard, reason); err != nil {
		m.fail(ctx, w.key, "", err)
		return false
	}
	if w.mode, w.how = direct, Loaded; reason != nil {
		w.how = Bypassed
	}
	return true
}
