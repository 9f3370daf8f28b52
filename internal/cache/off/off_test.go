package off

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

type pending map[string]bool

func (p pending) IsPending(key string) bool { return p[key] }

func open(of pending) *Switch {
	s := new(Switch)
	s.Open(Config{Pending: of, Changed: func(bool, time.Time) {}})
	s.Put(LookDue, false) // which asks Redis
	return s
}

func TestEachQuestionHasItsReason(t *testing.T) {
	t.Parallel()
	refused := errors.New("not yet")
	shut := func(s *Switch) {
		s.Gate = func(_ context.Context, key string) error {
			return map[string]error{"k": refused}[key]
		}
		s.Put(gate, true)
	}
	type example struct {
		put    func(*Switch)
		key    string
		why    error
		bypass bool // it matches ErrBypassed
	}
	expect.Each(t, map[string]example{
		"nothing":             {key: "k"},
		"the process":         {key: "k", put: func(s *Switch) { s.Here(true) }, why: ErrBypassed, bypass: true},
		"on again":            {key: "k", put: func(s *Switch) { s.Here(true); s.Here(false) }},
		"the fleet":           {key: "k", put: func(s *Switch) { s.Learn(time.Now(), time.Hour) }, why: ErrBypassed, bypass: true},
		"both, and one ends":  {key: "k", put: func(s *Switch) { s.Learn(time.Now(), time.Hour); s.Here(true); s.Here(false) }, why: ErrBypassed, bypass: true},
		"the gate":            {key: "k", put: shut, why: refused, bypass: true},
		"the gate lets it in": {key: "other", put: shut},
		"past the gate":       {key: "pending", put: shut, why: errPending},
		"what is pending":     {key: "pending", why: errPending},
		"the first of all":    {key: "pending", put: func(s *Switch) { s.Here(true) }, why: ErrBypassed, bypass: true},
		"intents, by pastOf":  {key: "k", put: func(s *Switch) { s.Put(Intents, true) }},
		"pending, of another": {key: "k", put: func(s *Switch) { s.Put(Pending, true) }},
	}, func(t *testing.T, _ string, c example) {
		s := open(pending{"pending": true})
		if c.put != nil {
			c.put(s)
		}
		got := s.Why(context.Background(), c.key)
		expect.ErrorIs(t, got, c.why)
		expect.Equal(t, "is a bypass", errors.Is(got, ErrBypassed), c.bypass)
		if got != nil && c.key == "k" {
			expect.Equal(t, "a hit sees it", s.None(), false)
		}
	})
}
