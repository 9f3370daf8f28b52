package cacheguardtest

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/roundtrip"
)

const (
	mostHanded  = 10_000 // values are kept to be looked at again
	mostAltered = 10     // are told
)

// values looks at what passes through the Guards of a test: whether it comes back from its Codec, and whether callers
// change it. Values come as *V.
type values struct {
	mu      sync.Mutex
	handed  []handed
	altered []altered // no two for the same reason
}

// handed is a value that a caller got.
type handed struct {
	key     string
	changed func() (path, what string) // how it differs from what it was; empty: it does not
}

// altered is a value that does not come back from its Codec as it was.
type altered struct {
	key string
	err *roundtrip.Error
}

// Check refuses a value that is to be stored, if it does not come back from its Codec as it was.
func (s *values) Check(key string, c protocol.Codec, value any) error {
	_, err := roundtrip.Check(c, value)
	var differs *roundtrip.Error
	if errors.As(err, &differs) {
		s.mu.Lock()
		defer s.mu.Unlock()
		known := slices.ContainsFunc(s.altered, func(a altered) bool { return a.err.Error() == differs.Error() })
		if !known && len(s.altered) < mostAltered {
			s.altered = append(s.altered, altered{key, differs})
		}
	}
	return err
}

// HandOut returns a copy of the value, unless one would differ, or a Judge has seen the value itself. It is looked at
// again at the end.
func (s *values) HandOut(key string, c protocol.Codec, value any, shown bool) any {
	if _, immutable := value.(*string); immutable {
		return value
	}
	was, mine := copyOf(c, value), copyOf(c, value)
	if was == nil || mine == nil {
		return value
	}
	if _, differs := roundtrip.Difference(value, was, c.Marshal); differs != "" {
		return value
	}
	if shown || !roundtrip.Identical(value, mine) {
		mine = value
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handed) < mostHanded {
		s.handed = append(s.handed, handed{key, func() (path, what string) { return roundtrip.Difference(was, mine, c.Marshal) }})
	}
	return mine
}

// copyOf is a copy of the value; nil: there is none.
func copyOf(c protocol.Codec, value any) any {
	if raw, is := value.(*[]byte); is {
		copied := bytes.Clone(*raw)
		return &copied
	}
	back, err := roundtrip.Again(c, value)
	if err != nil {
		return nil
	}
	return back
}

// report fails the test for what did not come back, and for each key, once, whose value was changed. Nobody may use the
// values any more.
func (s *values) report(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.altered {
		t.Errorf("cacheguardtest: a value of the key %q does not come back from its Codec as it was, so it is not stored: %v", a.key, a.err)
	}
	told := make(map[string]bool)
	for _, h := range s.handed {
		if path, what := h.changed(); what != "" && !told[h.key] {
			told[h.key] = true
			t.Errorf("cacheguardtest: a value of the key %q was changed after a Get returned it, at %s: callers share values, so copy it before", h.key, path)
		}
	}
}
