package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// restOfLooks is how much longer than a look at the catalogue nobody looks again, which counts for thousands of mapped tables.
const restOfLooks = 20

// reader reads the log on one connection, with three goroutines: one receives, one invalidates (the applier), one confirms.
type reader struct {
	feed    *Feed
	conn    *pgconn.PgConn // receive reads from it; confirm writes to it
	applier *engine.Applier[pglogrepl.LSN]
	decoder decoder

	sideMu   sync.Mutex
	side     *pgx.Conn // for statements
	was      *tree     // when somebody looked
	lookNext time.Time // at it, after that
	late     []string  // tables that wait for the end of transactions
	running  []uint64  // which

	confirmed atomic.Uint64 // everything before this position is invalidated
	changed   chan struct{} // has one if confirmed has moved
	awaiting  atomic.Int64  // since when receive waits for the database, in ns since 1970; 0: it does not
	log       string        // which, for notes
	noted     time.Time     // the position was, in Redis

	markMu sync.Mutex
	end    pglogrepl.LSN // of the log, at
	when   time.Time
}

func newReader(f *Feed, conn *pgconn.PgConn, side *pgx.Conn, tables *tree, at slot) *reader {
	r := &reader{feed: f, conn: conn, side: side, was: tables, changed: make(chan struct{}, 1), end: at.end, when: at.when}
	r.confirmed.Store(uint64(at.confirmed))
	r.applier = engine.NewApplier(f.engine, engine.Steps[pglogrepl.LSN]{Settle: r.settle, Confirm: r.confirm})
	r.decoder = decoder{engine: f.engine, ids: tables.tables(f.engine.Tables), ancestors: r.ancestors, kinds: r.kinds, look: r.asked, put: r.applier.Put}
	return r
}

// run reads until ctx or the connection ends, or until an error.
func (r *reader) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.feed.engine.Reading(true, time.Time{})
	var all sync.WaitGroup
	for _, part := range []func(context.Context) error{r.receive, r.applier.Run, r.attend} {
		all.Go(func() { cancel(part(ctx)) }) // owner: this call; stop: ctx; joined below. The first error ends the others
	}
	all.Wait()
	return context.Cause(ctx)
}

// receive reads messages and decodes them.
func (r *reader) receive(ctx context.Context) error {
	for {
		r.awaiting.Store(time.Now().UnixNano())
		message, err := r.conn.ReceiveMessage(ctx)
		r.awaiting.Store(0)
		if err != nil {
			return fmt.Errorf("cdc/postgres: read the log: %w", err)
		}
		switch message := message.(type) {
		case *pgproto3.CopyData:
			if err := r.data(ctx, message.Data); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			err := pgconn.ErrorResponseToPgError(message)
			if err.Code == "42704" { // the database looks into its catalogue as of when it logged the change
				return givenUp("there was no publication of the name when changes were logged")
			}
			return fmt.Errorf("cdc/postgres: read the log: %w", err)
		case *pgproto3.CopyDone:
			return errors.New("cdc/postgres: the database has ended the reading of the log")
		}
	}
}

func (r *reader) data(ctx context.Context, data []byte) error {
	if len(data) == 0 {
		return errors.New("cdc/postgres: an empty message")
	}
	switch data[0] {
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return fmt.Errorf("cdc/postgres: %w", err)
		}
		return r.decoder.message(ctx, x.WALData)
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		k, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return fmt.Errorf("cdc/postgres: %w", err)
		}
		if k.ReplyRequested {
			r.poke()
		}
		return r.decoder.idle(ctx, k.ServerWALEnd)
	}
	return nil
}

// confirm notes that everything before the position is invalidated, in Redis first.
func (r *reader) confirm(ctx context.Context, position pglogrepl.LSN) error {
	moved := uint64(position) > r.confirmed.Load()
	if moved || time.Since(r.noted) > lookEvery { // Redis may have lost it
		if err := r.persist(ctx, max(uint64(position), r.confirmed.Load())); err != nil {
			return err
		}
	}
	if moved {
		r.confirmed.Store(uint64(position))
		r.poke()
	}
	r.markMu.Lock()
	defer r.markMu.Unlock()
	if position >= r.end && !r.when.IsZero() {
		r.feed.engine.CaughtUp(r.when)
	}
	return nil
}

func (r *reader) poke() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// attend tells the database the position, and looks after the slot. Once a second it asks for an answer, which moves the position of an
// idle database, and shows whether the network is dead.
func (r *reader) attend(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		ping := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.changed:
		case <-tick.C:
			ping = true
			if since := r.awaiting.Load(); since != 0 && time.Now().UnixNano()-since > int64(silence) {
				return errors.New("cdc/postgres: the database is silent")
			}
			if err := r.watch(ctx, false); err != nil {
				return err
			}
		}
		position := pglogrepl.LSN(r.confirmed.Load())
		err := pglogrepl.SendStandbyStatusUpdate(ctx, r.conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: position, ReplyRequested: ping})
		if err != nil {
			return fmt.Errorf("cdc/postgres: confirm the position: %w", err)
		}
	}
}

// watch looks at what the slot holds back, and at what is published: now, or unless that takes long and was done not long ago.
func (r *reader) watch(ctx context.Context, now bool) error {
	r.sideMu.Lock()
	defer r.sideMu.Unlock()
	s, err := r.feed.look(ctx, r.side)
	if err != nil {
		return err
	}
	if err := r.ended(ctx); err != nil {
		return err
	}
	if now || time.Now().After(r.lookNext) {
		if err := r.compare(ctx); err != nil {
			return err
		}
	}
	r.markMu.Lock()
	if pglogrepl.LSN(r.confirmed.Load()) >= r.end {
		r.end, r.when = s.end, s.when
	}
	r.markMu.Unlock()
	return r.feed.bound(ctx, r.side, s)
}

// compare compares the tree with what it was. Tables whose partitions or children are others are invalidated whole first, so that no note says otherwise. The caller
// holds sideMu.
func (r *reader) compare(ctx context.Context) error {
	began := time.Now()
	var p problems
	now, err := r.feed.tree(ctx, r.side, &p)
	if err != nil {
		return err
	}
	whole, err := now.since(r.was, errors.Join(p...))
	if err == nil {
		err = r.reshaped(ctx, whole)
	}
	if err != nil {
		return err // whoever looks next sees it, too, so that nobody confirms what comes after it
	}
	r.was, r.lookNext = now, time.Now().Add(restOfLooks*time.Since(began))
	return nil
}

// reshaped invalidates tables whole whose values may be others, although the log has no rows of that.
func (r *reader) reshaped(ctx context.Context, tables []string) error {
	if len(tables) == 0 {
		return nil
	}
	return r.feed.engine.WholeOf(ctx, "their tables were rewritten, or have other partitions, children or columns than before: "+strings.Join(tables, ", "), r.feed.engine.Tables.Of(tables))
}

// asked looks for one who waits for what was committed before.
func (r *reader) asked(ctx context.Context) error { return r.watch(ctx, true) }

// kinds asks on the reader's own connection.
func (r *reader) kinds(ctx context.Context, types []uint32) ([]kind, error) {
	r.sideMu.Lock()
	defer r.sideMu.Unlock()
	return kindsOf(ctx, r.side, types)
}

func (r *reader) settle(ctx context.Context, xids []uint64) error {
	return settled(ctx, xids, func() (snapshot, error) {
		r.sideMu.Lock()
		defer r.sideMu.Unlock()
		return takeSnapshot(ctx, r.side)
	})
}

// ancestors asks on the reader's own connection.
func (r *reader) ancestors(ctx context.Context, id uint32) (map[uint32]string, error) {
	r.sideMu.Lock()
	defer r.sideMu.Unlock()
	return ancestors(ctx, r.side, id)
}
