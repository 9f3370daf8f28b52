package cacheguard

import (
	"context"
	"time"
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
		over := make(chan time.Time)
		close(over)
		m.patient = over // it does not wait for the holder of the lease either
	case <-ctx.Done():
	}
	return func() {}
}
