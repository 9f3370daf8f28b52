package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// silence is how long the server may say nothing; it says something each second.
const silence = 15 * time.Second

// purged is the server's code for a position that it does not have.
const purged = 1236

// errUnseen ends a reader, so that the next one sees whether the log is another one.
var errUnseen = fmt.Errorf("cdc/mysql: the server has logged a transaction, and no query sees it after %v", silence)

// lost reports whether the server does not have the position.
func lost(err error) bool {
	var e *mysql.MyError
	return errors.As(err, &e) && e.Code == purged
}

// unreadable reports whether what the server has sent is not understood.
func unreadable(err error) bool {
	return errors.As(err, new(*replication.EventError))
}

// reader reads the log on one connection, with two goroutines: one receives, one invalidates (the applier).
type reader struct {
	feed    *Feed
	db      *sql.DB
	fence   int64
	start   place
	from    place     // which is stored
	noted   time.Time // the position was, in the Redis of the Guards
	applier *engine.Applier[place]
	decoder decoder
}

func newReader(f *Feed, db *sql.DB, fence int64, from place) *reader {
	r := &reader{feed: f, db: db, fence: fence, start: from, from: from}
	r.decoder = decoder{engine: f.engine, at: from, columns: func(ctx context.Context, database, table string) (schema, error) {
		return schemaOf(ctx, db, database, table)
	}}
	r.decoder.merges.ask = func(ctx context.Context, engine string, names []string) ([]string, error) {
		return ofEngine(ctx, db, engine, names)
	}
	return r
}

// run reads until ctx or the connection ends, or until an error.
func (r *reader) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.applier = engine.NewApplier(r.feed.engine, engine.Steps[place]{
		Settle:  r.settle,
		Confirm: r.confirm,
	})
	r.decoder.put = r.applier.Put
	var all sync.WaitGroup
	for _, part := range []func(context.Context) error{r.receive, r.applier.Run} {
		all.Go(func() { cancel(part(ctx)) }) // owner: this call; stop: ctx; joined below. The first error ends the other
	}
	all.Wait()
	return context.Cause(ctx)
}

// confirm notes that everything before the place is invalidated, first beside the caches.
func (r *reader) confirm(ctx context.Context, p place) error {
	if p == r.from && time.Since(r.noted) < time.Second {
		return nil // as it is stored
	}
	if err := r.feed.engine.Persist(ctx, &r.feed.notes, p.server, p.number(), nil); err != nil {
		return err
	}
	r.noted = time.Now()
	if p == r.from {
		return r.feed.within(ctx, r.db, p) // the server may send nothing more from a log that it has thrown away
	}
	r.from = p
	return r.feed.store(ctx, r.fence, p)
}

func (r *reader) receive(ctx context.Context) error {
	cfg, err := r.feed.syncer(ctx, r.db)
	if err != nil {
		return err
	}
	syncer := replication.NewBinlogSyncer(cfg)
	defer syncer.Close()
	stream, err := syncer.StartSync(mysql.Position{Name: r.decoder.at.file, Pos: r.decoder.at.pos})
	if err != nil {
		return fmt.Errorf("cdc/mysql: read the log: %w", err)
	}
	r.feed.engine.Reading(true, time.Time{})
	for {
		event, err := r.next(ctx, stream)
		if err != nil {
			return fmt.Errorf("cdc/mysql: read the log: %w", err)
		}
		if err := r.decoder.event(ctx, event); err != nil {
			return err
		}
	}
}

func (r *reader) next(ctx context.Context, stream *replication.BinlogStreamer) (*replication.BinlogEvent, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, silence, errors.New("the database is silent"))
	defer cancel()
	event, err := stream.GetEvent(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return event, err
}

// settle returns when every new read of the database sees the transactions that end at the places. If the log is another one since, none ever does.
func (r *reader) settle(ctx context.Context, ends []uint64) error {
	last, began := slices.Max(ends), time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		now, err := r.feed.snapshot(ctx, r.db)
		waited := time.Since(began)
		switch {
		case err != nil:
			return err
		case now.server != r.start.server:
			return errors.New("cdc/mysql: " + another)
		case now.number() >= last:
			return nil
		case waited > time.Second && now.number() < r.start.number():
			return errShorter
		case waited > silence:
			return errUnseen
		}
		if err := engine.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
