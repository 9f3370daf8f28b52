package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cacheguard/go/examples/internal/program"
)

// thinkTime is the mean pause of a caller between two calls.
const thinkTime = 100 * time.Millisecond

// setCallers sends more callers, or fewer.
func (l *lab) setCallers(n int) {
	for len(l.callers) > n {
		last := len(l.callers) - 1
		l.callers[last]()
		l.callers = l.callers[:last]
	}
	for i := len(l.callers); i < n; i++ {
		ctx, stop := context.WithCancel(context.Background())
		l.callers = append(l.callers, stop)
		l.tasks.Go(func() { l.caller(ctx, i) }) // owner: l; stop: setCallers; joined by renew and close
	}
}

// caller thinks and calls in turn.
func (l *lab) caller(ctx context.Context, i int) {
	for program.Pause(ctx, thinkTime/2+rand.N(thinkTime)) {
		in := l.pick(i)
		if in == nil {
			continue
		}
		c := l.ledger.begin(in)
		a, err := in.get(ctx)
		if ctx.Err() != nil {
			a, err = answer{}, nil // given up
		}
		l.ledger.end(c, a, err)
	}
}

// pick is a balancer that knows which instances are alive: it returns the one that the i-th caller is sent to, or nil.
func (l *lab) pick(i int) *instance {
	for j := range l.instances {
		if in := l.instances[(i+j)%instances].Load(); in.alive() {
			return in
		}
	}
	return nil
}
