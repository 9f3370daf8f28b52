package cacheguard

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/script"
)

// turns are the rights to have a script under way. Thousands of keys that are missing at once take turns in asking, and
// none waits for the others on the time of its own operation, which would make a Redis that is busy, or a process that is,
// look like one that does not answer.
//
// Scripts that find maxRequests under way share the next requests. Five of them: when Redis hangs, as many failures in a row
// open the breaker. At most maxCalls each: so many keys wait if a connection alone hangs.
type turns chan struct{}

const (
	maxTurns    = 64 // of the Gets for one part of the keyspace
	maxRequests = 5
	maxCalls    = 16
	maxCarried  = 64 << 10 // bytes of a value that may hold up others

	maxBatchTurns = 512 // of a GetMany, which sends one pipeline after the other
	maxBatchCalls = 128
)

func newTurns(n int) turns { return make(turns, n) }

// turn waits until the flight may ask Redis, and returns what ends its turn. When Redis does not answer there is nothing
// to wait for; nor has one who has waited for WaitTimeout to be patient.
func (m *missed) turn(ctx context.Context) (done func()) {
	t := m.turns[m.health.Part(m.valueKey)]
	if m.batch != nil {
		t = m.batch.turns
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }
	case <-m.breaker.Opened():
	case <-m.patient:
		m.losePatience()
	case <-ctx.Done():
	}
	return func() {}
}

// place waits until the call is about to be sent, in a pipeline with others of the GetMany, or of all Gets when there are many;
// or has it be sent alone, when there is nothing to wait for.
func (m *missed) place(ctx context.Context, call *script.Call, large bool) *script.Place {
	calls := m.calls[m.health.Part(m.valueKey)]
	if m.batch != nil {
		calls = m.batch.calls
	}
	if m.batch == nil && large {
		return calls.Alone(call)
	}
	p := calls.Place(call)
	if p.Ready() == nil {
		return p
	}
	select {
	case <-p.Ready():
		return p
	case <-m.breaker.Opened():
	case <-m.patient:
		m.losePatience()
	case <-ctx.Done():
	}
	p.Leave()
	return p
}

// losePatience has the flight not wait for the holder of the lease either.
func (m *missed) losePatience() {
	over := make(chan time.Time)
	close(over)
	m.patient = over
}
