package scenario

import (
	"context"
	"sync/atomic"
	"time"
)

// database is a slow source with that many connections.
type database struct {
	takes       time.Duration
	connections chan struct{} // one place each; nil: no limit

	loads   atomic.Int64
	running atomic.Int64
	most    atomic.Int64 // at once, those that wait for a connection included
}

func newDatabase(takes time.Duration, connections int) *database {
	d := &database{takes: takes}
	if connections > 0 {
		d.connections = make(chan struct{}, connections)
	}
	return d
}

// load returns a loader of one value.
func (d *database) load(value []byte) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		d.loads.Add(1)
		now := d.running.Add(1)
		defer d.running.Add(-1)
		for most := d.most.Load(); now > most && !d.most.CompareAndSwap(most, now); {
			most = d.most.Load()
		}
		if d.connections != nil {
			d.connections <- struct{}{}
			defer func() { <-d.connections }()
		}
		if !Pause(ctx, d.takes) {
			return nil, context.Cause(ctx)
		}
		return value, nil
	}
}
