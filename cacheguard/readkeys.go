package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/tier"
)

// readKeys reads the keys and returns those that are to be loaded. It has stale ones replaced in the background.
func (m *many[V]) readKeys(ctx context.Context, keys []string) (toLoad []wanted) {
	keys, toLoad = m.readable(ctx, keys)
	keys = m.takeLocal(ctx, keys)
	reads, marks := make([]*link.Read, len(keys)), make([]tier.Mark, len(keys))
	for i, key := range keys {
		marks[i] = m.guard.local.mark(key)
		reads[i], _ = m.guard.link.Ask(ctx, m.guard.keys.ValueKey(key)) // refuses when it is closed only: nil
	}
	var old []wanted
	for i, key := range keys {
		err := link.ErrClosed
		if reads[i] != nil {
			err = reads[i].Wait(ctx)
		}
		switch w := (wanted{key: key}); {
		case err != nil:
			m.fail(ctx, key, "", m.guard.ended(ctx, key, err))
		case m.act(ctx, reads[i], marks[i], &w):
			toLoad = append(toLoad, w)
		case w.mode == background:
			old = append(old, w)
		}
	}
	m.refreshAll(ctx, old)
	return toLoad
}

// readable returns the keys that may be read, and those of the others that are to be loaded. It looks before anything is
// read: what was read while an invalidation was pending is old, even if that has been sent by the time the reply is there.
func (m *many[V]) readable(ctx context.Context, keys []string) (readable []string, toLoad []wanted) {
	readable = make([]string, 0, len(keys))
	for _, key := range keys {
		w, reason := wanted{key: key}, m.guard.mustBypass(key)
		switch {
		case reason == nil:
			readable = append(readable, key)
		case m.bypass(ctx, &w, reason):
			toLoad = append(toLoad, w)
		}
	}
	return readable, toLoad
}

// takeLocal answers with what the local tier has, and returns the other keys.
func (m *many[V]) takeLocal(ctx context.Context, keys []string) (others []string) {
	if m.guard.local == nil {
		return keys
	}
	for _, key := range keys {
		if kept, ok := m.spec.fromLocal(m.guard, key); ok {
			sample(ctx, m.guard, key, kept, m.spec)
			m.answer(ctx, key, kept)
		} else {
			others = append(others, key)
		}
	}
	return others
}

// act does what decide says of what was read. It reports whether the key is to be loaded, and w says how.
func (m *many[V]) act(ctx context.Context, read *link.Read, mark tier.Mark, w *wanted) bool {
	r := decodeRead[V](m.guard, w.key, mark, read)
	d := m.spec.decide(m.guard, w.key, r, read.Err)
	w.unfit, w.aged, w.took = read.Raw, d.aged, r.entry.Took
	switch d.action {
	case doServe:
		sample(ctx, m.guard, w.key, d.found, m.spec)
		m.answer(ctx, w.key, d.found)
	case doRefresh:
		w.mode = background
		m.answer(ctx, w.key, d.found)
	case doRebuild:
		w.mode = filled
		return true
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

// bypass makes the key one to be loaded without the cache, unless that is not wanted.
func (m *many[V]) bypass(ctx context.Context, w *wanted, reason *RedisError) bool {
	if err := m.spec.refusal(m.guard, reason); err != nil {
		m.fail(ctx, w.key, "", err)
		return false
	}
	w.mode, w.how = direct, Bypassed
	return true
}
