package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/mutex"
)

const (
	lease      = 5 * time.Second // after a reader that is silent
	lookEvery  = time.Second     // at the position, while another instance reads
	firstPause = 100 * time.Millisecond
	maxPause   = time.Second // so that a trouble which is over is seen to be
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
	db := f.open()
	defer func() { _ = db.Close() }() // whatever it says, the connection is gone
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		began := time.Now()
		err := f.turn(ctx, locks, db)
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

// turn waits for the lock, and reads.
func (f *Feed) turn(ctx context.Context, locks *mutex.Locker, db *sql.DB) error {
	waiting, end := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer end()
	others.Go(func() { f.standBy(waiting) }) // owner: this call; stop: end; joined here and above
	return locks.Do(ctx, f.cfg.Name, func(ctx context.Context, l *mutex.Lease) error {
		end()
		others.Wait()
		return f.read(ctx, db, l.Fence())
	})
}

// standBy looks whether all is well with the position that another instance stores.
func (f *Feed) standBy(ctx context.Context) {
	for engine.Sleep(ctx, lookEvery) == nil {
		if err := f.stranger(ctx); ctx.Err() == nil {
			f.engine.Trouble(err)
		}
	}
}

// Why a position is not read on from.
const (
	another = "the server is another one"
	shorter = "the log is shorter than it was"
)

// read reads the log for as long as this instance has the lock.
func (f *Feed) read(ctx context.Context, db *sql.DB, fence int64) error {
	ready := f.ready(ctx, db)
	if errors.Is(ready, errGaps) { // what is written now is missed for good
		return errors.Join(ready, f.forget(ctx, fence))
	}
	if ready != nil {
		return ready
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
	case from == nowhere:
		why = "the log has left changes out"
	case from.server != now.server:
		why = another
	case from.number() > now.number():
		why = shorter
	}
	if why == "" {
		noted, owns := f.notes.Own(ctx, from.server, from.number())
		err = f.engine.GoOn(ctx, noted, owns)
	} else {
		from, err = f.begin(ctx, fence, now, why)
	}
	if err != nil {
		return err
	}
	r := newReader(f, db, fence, from)
	err = r.run(ctx)
	if why = f.givesUp(r.from, err); why == "" {
		return err
	}
	if now, err = f.snapshot(ctx, db); err != nil {
		return err
	}
	_, err = f.begin(ctx, fence, now, why)
	return errors.Join(errors.New("cdc/mysql: the position is given up, as "+why), err)
}

// attempts to read the log at a place that it cannot be read at.
const attempts = 3

// givesUp says why a position is not read on from; empty: it is.
func (f *Feed) givesUp(at place, err error) string {
	switch {
	case lost(err):
		return "the server has purged the log"
	case errors.Is(err, errAnew):
		return errAnew.Error()
	case errors.Is(err, errShorter):
		return shorter
	case !unreadable(err):
		return ""
	case f.stuck != at:
		f.stuck, f.attempts = at, 0
	}
	if f.attempts++; f.attempts < attempts {
		return ""
	}
	f.cfg.Logger.Error("cdc: the position is given up", "place", at, "why", err)
	return "the log cannot be read on from there"
}

// begin invalidates everything, and stores a place before which nothing is left to invalidate.
func (f *Feed) begin(ctx context.Context, fence int64, at place, why string) (place, error) {
	if err := f.engine.Whole(ctx, why); err != nil {
		return at, err
	}
	if err := f.engine.Persist(ctx, &f.notes, at.server, at.number(), nil); err != nil {
		return at, err
	}
	return at, f.store(ctx, fence, at)
}
