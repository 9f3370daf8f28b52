package epoch

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	shards        = 16
	maxRemembered = 1 << 17 // tags, of all keys together
)

// memory has the tags that keys had last, so that a read asks for their epochs together with the value. A forgotten tag
// costs a round trip.
type memory struct {
	used   atomic.Bool // there were tags
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu    sync.Mutex
	byKey map[string]*remembered
	tags  int // of all keys
}

// remembered is what a read of a key asks for. It does not change.
type remembered struct {
	kind  string
	names []string // of the tags
	keys  []string // those of the kind, and then those of the tags
}

func newRemembered(p *part, kind string, names []string) *remembered {
	r := &remembered{kind: kind, names: names, keys: slices.Clip(p.common(kind).keys)}
	for _, name := range names {
		r.keys = append(r.keys, p.key(name))
	}
	return r
}

func (m *memory) shard(key string) *shard { return &m.shards[maphash.String(m.seed, key)%shards] }

// of returns what is remembered of a key of the kind; nil: nothing.
func (m *memory) of(key, kind string) *remembered {
	if !m.used.Load() {
		return nil
	}
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byKey[key]; r != nil && r.kind == kind {
		return r
	}
	return nil
}

// note notes the names of the tags that a key has now. When there is no room, it forgets those of other keys.
func (m *memory) note(p *part, key, kind string, names []string) {
	m.used.Store(true)
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(key)
	for other := range s.byKey {
		if s.tags+len(names) <= maxRemembered/shards {
			break
		}
		s.forgetLocked(other)
	}
	if len(names) == 0 || len(names) > maxRemembered/shards {
		return
	}
	if s.byKey == nil {
		s.byKey = make(map[string]*remembered)
	}
	s.byKey[strings.Clone(key)] = newRemembered(p, kind, names)
	s.tags += len(names)
}

func (s *shard) forgetLocked(key string) {
	if r := s.byKey[key]; r != nil {
		s.tags -= len(r.names)
		delete(s.byKey, key)
	}
}

// find returns the place of a tag, which may be the one expected; below 0: it is not there.
func (m *remembered) find(tag []byte, expected int) int {
	if m == nil {
		return -1
	}
	is := func(name string) bool { return name[1:] == string(tag) }
	if expected < len(m.names) && is(m.names[expected]) {
		return expected
	}
	return slices.IndexFunc(m.names, is)
}

// key is the key of a tag's epoch.
func (m *remembered) key(i int) string { return m.keys[len(m.keys)-len(m.names)+i] }
