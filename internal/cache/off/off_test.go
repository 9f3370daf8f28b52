package off

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/inprocess"
	"github.com/cacheguard/go/internal/testing/expect"
)

type pending map[string]bool

func (p pending) IsPending(key string) bool { return p[key] }

func open(disabled bool, of pending) *Switch {
	s := new(Switch)
	s.Open(Config{Pending: of, Changed: func(bool, time.Time) {}}, disabled)
	s.Put(LookDue, false) // which asks Redis
	return s
}

func TestEachQuestionHasItsReason(t *testing.T) {
	t.Parallel()
	excused := func(s *Switch) context.Context { return s.Excuse(context.Background()) }
	for name, c := range map[string]struct {
		disabled bool
		put      func(*Switch)
		ctx      func(*Switch) context.Context
		key      string
		why      error
		bypass   bool // it matches ErrBypassed
	}{
		"nothing":             {key: "k"},
		"disabled":            {key: "k", disabled: true, why: inprocess.ErrDisabled},
		"the process":         {key: "k", put: func(s *Switch) { s.Here(true) }, why: ErrBypassed, bypass: true},
		"on again":            {key: "k", put: func(s *Switch) { s.Here(true); s.Here(false) }},
		"the fleet":           {key: "k", put: func(s *Switch) { s.Learn(time.Now(), time.Hour) }, why: ErrBypassed, bypass: true},
		"both, and one ends":  {key: "k", put: func(s *Switch) { s.Learn(time.Now(), time.Hour); s.Here(true); s.Here(false) }, why: ErrBypassed, bypass: true},
		"the key":             {key: "k", put: func(s *Switch) { s.Serve(func(key string) bool { return key != "k" }) }, why: errUnserved, bypass: true},
		"another key":         {key: "other", put: func(s *Switch) { s.Serve(func(key string) bool { return key != "k" }) }},
		"all keys again":      {key: "k", put: func(s *Switch) { s.Serve(func(string) bool { return false }); s.Serve(nil) }},
		"the call":            {key: "k", ctx: excused, why: errExcused, bypass: true},
		"another's call":      {key: "k", put: func(s *Switch) { s.Put(calls, true) }, ctx: func(*Switch) context.Context { return excused(open(false, nil)) }},
		"what is pending":     {key: "pending", why: errPending},
		"the first of all":    {key: "pending", put: func(s *Switch) { s.Here(true) }, ctx: excused, why: ErrBypassed, bypass: true},
		"intents, by pastOf":  {key: "k", put: func(s *Switch) { s.Put(Intents, true) }},
		"pending, of another": {key: "k", put: func(s *Switch) { s.Put(Pending, true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(c.disabled, pending{"pending": true})
			if c.put != nil {
				c.put(s)
			}
			ctx := context.Background()
			if c.ctx != nil {
				ctx = c.ctx(s)
			}
			got := s.Why(ctx, c.key)
			expect.Equal(t, "why", got, c.why)
			expect.Equal(t, "is a bypass", errors.Is(got, ErrBypassed), c.bypass)
			if got != nil && c.key == "k" {
				expect.Equal(t, "a hit sees it", s.None(), false)
			}
		})
	}
}
