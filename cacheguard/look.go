package cacheguard

import (
	"context"

	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/tier"
)

// look reads the keys and returns those that are to be loaded. It has stale ones replaced in the background.
func (m *many[V]) look(ctx context.Context, keys []string) (missing []wanted) {
	keys, missing = m.trusted(ctx, keys)
	keys = m.lookLocally(ctx, keys)
	reads, marks := make([]*link.Read, len(keys)), make([]tier.Mark, len(keys))
	for i, key := range keys {
		marks[i] = m.local.mark(key)
		reads[i], _ = m.link.Ask(ctx, m.redisKey(key)) // refuses when it is closed only: nil
	}
	var old []wanted
	for i, key := range keys {
		err := link.ErrClosed
		if reads[i] != nil {
			err = reads[i].Wait(ctx)
		}
		switch w := (wanted{key: key}); {
		case err != nil:
			m.fail(ctx, key, "", m.ended(ctx, key, err))
		case m.see(ctx, reads[i], marks[i], &w):
			missing = append(missing, w)
		case w.mode == background:
			old = append(old, w)
		}
	}
	m.refreshAll(ctx, old)
	return missing
}

// trusted returns the keys that may be read, and those of the others that are to be loaded. It looks before anything is
// read: what was read while an invalidation was owed is old, even if that has been sent by the time the reply is there.
func (m *many[V]) trusted(ctx context.Context, keys []string) (trusted []string, missing []wanted) {
	trusted = make([]string, 0, len(keys))
	for _, key := range keys {
		w, reason := wanted{key: key}, m.distrust(key)
		switch {
		case reason == nil:
			trusted = append(trusted, key)
		case m.bypass(ctx, &w, reason):
			missing = append(missing, w)
		}
	}
	return trusted, missing
}

// lookLocally takes what the local tier has, and returns the other keys.
func (m *many[V]) lookLocally(ctx context.Context, keys []string) (others []string) {
	if m.local == nil {
		return keys
	}
	for _, key := range keys {
		if local, ok := kept[V](m.Guard, key); ok {
			m.sample(ctx, key, local.value)
			m.answer(ctx, key, local)
		} else {
			others = append(others, key)
		}
	}
	return others
}

// see looks at what was read, and reports whether the key is to be loaded, and how.
func (m *many[V]) see(ctx context.Context, read *link.Read, mark tier.Mark, w *wanted) bool {
	s := view[V](m.Guard, w.key, mark, read)
	w.unfit, w.aged, w.took = read.Raw, s.aged(), s.entry.Took
	switch s.state {
	case unreachable:
		reason := m.redisError("get", w.key, read.Err)
		old, ok := lastResort[V](m.Guard, w.key, false)
		if !ok {
			return m.bypass(ctx, w, reason)
		}
		m.answer(ctx, w.key, old)
	case missing, expired, unusable:
		w.mode = filled
		return true
	case ageing, stale:
		m.reportStale(w.key, s.state, s.entry)
		w.mode = background
		m.answer(ctx, w.key, s.found)
	case fresh:
		m.sample(ctx, w.key, s.value)
		m.answer(ctx, w.key, s.found)
	}
	return false
}

// sample has a hit verified.
func (m *many[V]) sample(ctx context.Context, key string, served *V) {
	if !m.drawn() {
		return
	}
	load := m.load
	verify(ctx, m.Guard, key, served, func(ctx context.Context) (V, error) {
		values, err := load(ctx, []string{key})
		value, found := values[key]
		if err == nil && !found {
			err = ErrNotFound
		}
		return value, err
	})
}

func (m *many[V]) answer(ctx context.Context, key string, f found[V]) {
	v, how, err := f.result()
	m.take(ctx, key, v, how, err, err != nil)
}

// bypass makes the key one to be loaded without the cache, unless that is not wanted.
func (m *many[V]) bypass(ctx context.Context, w *wanted, reason *RedisError) bool {
	if m.cfg.FailClosed {
		m.fail(ctx, w.key, "", reason)
		return false
	}
	w.mode, w.how = direct, Bypassed
	return true
}
