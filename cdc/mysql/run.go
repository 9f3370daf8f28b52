package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/mutex"
)

const (
	lease      = 5 * time.Second // after a reader that is silent
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// Run invalidates what changes, until ctx ends; the error is its cause then. Run it on every instance: one of them reads the log, the others stand by
// and take over when it dies. Whatever fails is tried again, so Run returns early only if a Guard is closed, or if Run is running
// already. Stats and the Logger say what fails.
func (f *Feed) Run(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	end, err := f.engine.Start()
	if err != nil {
		return err
	}
	defer end()
	locks, err := mutex.New(f.cfg.Redis, mutex.Config{Prefix: "cacheguard:cdc:lock", TTL: lease})
	if err != nil {
		return fmt.Errorf("cdc/mysql: %w", err)
	}
	defer func() { _ = locks.Close() }() // always nil
	db, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // whatever it says, the connection is gone
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		began := time.Now()
		err := locks.Do(ctx, f.cfg.Name, func(ctx context.Context, l *mutex.Lease) error { return f.read(ctx, db, l.Fence()) })
		f.engine.Reading(false, time.Time{})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, cacheguard.ErrClosed):
			return err
		}
		f.engine.Reconnected()
		f.engine.Trouble(err)
		if time.Since(began) > 2*maxPause {
			pause = firstPause
		}
		if err := engine.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// read reads the log for as long as this instance has the lock.
func (f *Feed) read(ctx context.Context, db *sql.DB, fence int64) error {
	if err := f.ready(ctx, db); err != nil {
		return err
	}
	from, there, err := f.claim(ctx, fence)
	if err != nil {
		return err
	}
	now, err := f.snapshot(ctx, db) // after it: what was stored is not beyond the end of the log then
	if err != nil {
		return err
	}
	why := ""
	switch {
	case !there:
		why = "there is no position: Redis has lost it, or this is the first start"
	case from.server != now.server:
		why = "the server is another one"
	case from.number() > now.number():
		why = "the log is shorter than it was"
	}
	if why != "" {
		if from, err = f.begin(ctx, fence, now, why); err != nil {
			return err
		}
	}
	r := newReader(f, db, fence, from)
	err = r.run(ctx)
	if !lost(err) {
		return err
	}
	if now, err = f.snapshot(ctx, db); err != nil {
		return err
	}
	_, err = f.begin(ctx, fence, now, "the server has purged the log")
	return errors.Join(errors.New("cdc/mysql: the position is lost"), err)
}

// begin invalidates everything, and stores a place before which nothing is left to invalidate.
func (f *Feed) begin(ctx context.Context, fence int64, at place, why string) (place, error) {
	if err := f.engine.Whole(ctx, why); err != nil {
		return at, err
	}
	return at, f.store(ctx, fence, at)
}
