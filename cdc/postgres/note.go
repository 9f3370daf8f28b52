package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// log says which positions can be compared: those of a server, also which of the promoted ones, a database and a publication.
func (f *Feed) log(ctx context.Context, side *pgx.Conn) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = side.QueryRow(ctx, "SELECT format('%s/%s/%s', (SELECT system_identifier FROM pg_control_system()), left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), current_database())").Scan(&name)
	if err != nil {
		return "", fmt.Errorf("cdc/postgres: %w", err)
	}
	return name + "/" + f.cfg.Publication, nil
}

// owns compares the slot, as it was looked at before, with the notes in Redis.
func (f *Feed) owns(ctx context.Context, side *pgx.Conn, at slot) (engine.Noted, error) {
	name, err := f.log(ctx, side)
	if err != nil {
		return nil, err
	}
	noted, err := f.notes.Own(ctx, name, uint64(at.confirmed))
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: slot %s: %w", f.cfg.Slot, err)
	}
	return noted, nil
}

// stranger returns an error if somebody else reads the slot, or has read it.
func (f *Feed) stranger(ctx context.Context, side *pgx.Conn) error {
	for awaited := new(engine.Awaited); ; {
		at, err := f.look(ctx, side)
		if err != nil || !at.there {
			return err
		}
		_, owns := f.owns(ctx, side, at)
		if err = awaited.Judge(owns); err != nil || !errors.Is(owns, engine.ErrAnother) {
			return err
		}
		if err := engine.Sleep(ctx, firstPause); err != nil {
			return err
		}
	}
}

// own invalidates what may be old although the slot's position is behind it, unless the slot is fresh, and notes that everything before it is invalidated.
func (r *reader) own(ctx context.Context, at slot, fresh bool) (err error) {
	if r.log, err = r.feed.log(ctx, r.side); err != nil {
		return err
	}
	if !fresh {
		noted, err := r.feed.owns(ctx, r.side, at)
		if changed := noted.Changed(r.was.published, states); len(changed) > 0 {
			return givenUp("what is published of table " + strings.Join(changed, ", ") + " has changed while no instance read, so changes may have been left out")
		}
		if err := r.feed.engine.GoOn(ctx, noted, err); err != nil {
			return err
		}
		if slices.ContainsFunc(noted, func(n engine.Note) bool { return n.Position > uint64(at.end) }) {
			if err := r.feed.engine.Whole(ctx, "the log is shorter than it was"); err != nil {
				return err
			}
		}
		if err := r.reshaped(ctx, noted.Changed(r.was.published, shapes)); err != nil {
			return err
		}
		lacking := noted.Lacking(r.feed.engine.Tables)
		if err != nil {
			lacking = r.feed.engine.Tables.Names()
		}
		if err := r.await(ctx, lacking); err != nil {
			return err
		}
	}
	return r.persist(ctx, uint64(at.confirmed))
}

// await has tables invalidated whole once more when the transactions that run now have ended: nobody knows what was published of the tables when these wrote.
func (r *reader) await(ctx context.Context, tables []string) error {
	if len(tables) == 0 {
		return nil
	}
	now, err := takeSnapshot(ctx, r.side)
	r.late, r.running = tables, now.running
	return err
}

// ended invalidates them when that is so. The caller holds sideMu.
func (r *reader) ended(ctx context.Context) error {
	if len(r.late) == 0 {
		return nil
	}
	now, err := takeSnapshot(ctx, r.side)
	if err != nil || slices.ContainsFunc(r.running, now.runs) {
		return err
	}
	if len(r.running) > 0 {
		err = r.feed.engine.WholeOf(ctx, "transactions have ended that may have written before their tables were published: "+strings.Join(r.late, ", "), r.feed.engine.Tables.Of(r.late))
	}
	if err == nil {
		r.late = nil
	}
	return err
}

// persist notes in Redis that everything before the position is invalidated, with what is published.
func (r *reader) persist(ctx context.Context, position uint64) error {
	r.sideMu.Lock()
	published := maps.Clone(r.was.published)
	for _, name := range r.late {
		published[name] = "late" // so that whoever reads next begins anew, unless this is over
	}
	r.sideMu.Unlock()
	err := r.feed.engine.Persist(ctx, &r.feed.notes, r.log, position, published)
	r.noted = time.Now()
	return err
}
