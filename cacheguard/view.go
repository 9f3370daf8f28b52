package cacheguard

import (
	"github.com/cacheguard/go/internal/link"
	"github.com/cacheguard/go/internal/protocol"
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
	unusable                 // something that is no entry, or not of this type
	unreachable              // Redis gave no answer
)

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

// seen is what a read found, as the type that its readers want.
type seen[V any] struct {
	found[V] // when fresh, ageing or stale
	state    state
	entry    protocol.Entry
	room     V // for the value
}

// aged reports whether the value seems too old.
func (s *seen[V]) aged() bool { return s.state == stale || s.state == expired }

// view decodes and judges what was read after the mark: once for all the calls that share the read and want the same
// type.
func view[V any](g *Guard, key string, mark tier.Mark, read *link.Read) *seen[V] {
	if read.Err != nil {
		return &seen[V]{state: unreachable}
	}
	if read.Raw == nil {
		return &seen[V]{state: missing}
	}
	s, ok := read.Share.Make(func() any {
		s := decodeAs[V](g, key, read.Raw)
		keep(g, key, mark, read, s)
		return s
	}).(*seen[V])
	if !ok {
		s = decodeAs[V](g, key, read.Raw) // shared with callers that want another type
	}
	return s
}

func decodeAs[V any](g *Guard, key string, raw []byte) *seen[V] {
	s := new(seen[V])
	var err error
	if s.entry, err = protocol.DecodeEntry(raw); err == nil && s.entry.Kind != protocol.Absent {
		s.value = &s.room
		err = protocol.DecodeValue(g.cfg.Codec, s.entry, s.value)
	}
	if err != nil {
		g.cfg.Hooks.damaged(key, err)
		return &seen[V]{state: unusable}
	}
	s.state, s.how = g.freshness(key, s.entry), Hit
	if s.state == stale {
		s.how = Stale
	}
	return s
}

// decode returns the entry and its value, which is nil for remembered absence.
func (g *Guard) decode(raw []byte, sh protocol.Shape) (protocol.Entry, any, error) {
	e, err := protocol.DecodeEntry(raw)
	if err != nil || e.Kind == protocol.Absent {
		return e, nil, err
	}
	value, err := sh.Decode(g.cfg.Codec, e)
	return e, value, err
}
