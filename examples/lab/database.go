package main

import (
	"context"
	"sync/atomic"
	"time"
)

// product is the row that everybody wants. Each write makes the next version.
type product struct {
	Version int64 `json:"version"`
}

// database is a simulated one with a single row. A query holds one of few connections for as long as the latency says. The
// others queue: first come, first served.
type database struct {
	pool    chan struct{} // has an element for each connection in use; Go serves blocked senders in order
	latency atomic.Int64  // a time.Duration
	version atomic.Int64
	queued  atomic.Int64
}

// query returns the row as it was when the query got its connection.
func (d *database) query(ctx context.Context) (p product, err error) {
	err = d.hold(ctx, func() { p.Version = d.version.Load() })
	return p, err
}

// write makes a new version, which is there when write returns.
func (d *database) write(ctx context.Context) error {
	err := d.statement(ctx)
	if err == nil {
		d.commit()
	}
	return err
}

// statement is a write in a transaction: nobody else sees what it changes, until the commit.
func (d *database) statement(ctx context.Context) error { return d.hold(ctx, func() {}) }

func (d *database) commit() { d.version.Add(1) }

// hold waits for a connection, calls begin, and keeps the connection for the latency. When ctx ends, the connection is free
// again, as drivers cancel their queries.
func (d *database) hold(ctx context.Context, begin func()) error {
	d.queued.Add(1)
	select {
	case d.pool <- struct{}{}:
		d.queued.Add(-1)
	case <-ctx.Done():
		d.queued.Add(-1)
		return ctx.Err()
	}
	defer func() { <-d.pool }()
	begin()
	timer := time.NewTimer(time.Duration(d.latency.Load()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
