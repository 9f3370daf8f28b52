package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// Each feed says in the outbox which tables it reads: by a row for each, with the op reading, whose cache it is for as old_row, what the database has of the table (noted.shape) as
// new_row, and when that was said last as at_ms. It says so before it reads anything, and again at each look. Two things are found by that. A row of the outbox is read once,
// so two services that map the same table take each other's rows. And what changes values without a row in the outbox changes the shape.
const reading = "reading"

// stale is after how long a row that nobody has renewed goes.
const stale = 24 * time.Hour

// readers are the feeds that read the rows of a table.
type readers struct {
	mine          []string // ids of this cache's rows
	shape         string   // as this cache's feed has said
	since, others int64    // when this cache's feed, and another one's, said so last; 0: never
	gone          []string // ids of others' rows that are stale
}

// shared reports whether others have read since a moment, in milliseconds since 1970. One that has said so may read until it says so again.
func (f *Feed) shared(r *readers, since int64) bool {
	return r.others > 0 && r.others > since-2*f.every.Milliseconds()
}

// errShared says what to do about it.
func errShared(tables []string) error {
	return fmt.Errorf("cdc/outbox: table %s: %w (mend with: one feed that has the Guards of both services)", strings.Join(tables, ", "), engine.ErrAnother)
}

// errNotYet says that a feed that runs has not looked yet.
var errNotYet = errors.New("cdc/outbox: no instance has looked at the tables as they are now")

// readers looks who reads which mapped tables, by now.
func (f *Feed) readers(ctx context.Context) (all map[string]*readers, now int64, err error) {
	all = make(map[string]*readers)
	for _, name := range f.engine.Tables.Names() {
		all[name] = new(readers)
	}
	cache, err := f.notes.Cache(ctx)
	if err != nil {
		return nil, 0, err
	}
	rows, err := f.texts(ctx, join("SELECT id, tbl, coalesce(old_row, ''), coalesce(new_row, ''), at_ms, ", nowOf[f.cfg.Dialect], " FROM ", defaultTable, " WHERE op = ", text(reading)))
	if err != nil {
		return nil, 0, fmt.Errorf("cdc/outbox: look who reads the outbox: %w", err)
	}
	for _, row := range rows {
		r := all[row[1]]
		if r == nil {
			continue
		}
		at, _ := strconv.ParseInt(row[4], 10, 64) // the database has made it
		now, _ = strconv.ParseInt(row[5], 10, 64) // the same
		if row[2] == cache {
			r.mine, r.since, r.shape = append(r.mine, row[0]), max(r.since, at), row[3]
			continue
		}
		if r.others = max(r.others, at); at < now-stale.Milliseconds() {
			r.gone = append(r.gone, row[0])
		}
	}
	return all, now, nil
}

// compare returns the tables of which others have read rows since this cache's feed said so last, and those whose values may be others without a row.
func (f *Feed) compare(ctx context.Context, by map[string]*noted) (shared, others []string, err error) {
	all, _, err := f.readers(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range f.engine.Tables.Names() {
		switch r := all[name]; {
		case f.shared(r, r.since):
			shared = append(shared, name)
		case len(r.mine) == 0 || r.shape != by[name].shape:
			others = append(others, name)
		}
	}
	return shared, others, nil
}

// claim says which tables this feed reads, and as of which shape. The same cache may have several rows for a table: then all are renewed.
func (f *Feed) claim(ctx context.Context, by map[string]*noted) error {
	all, _, err := f.readers(ctx)
	if err != nil {
		return err
	}
	cache, err := f.notes.Cache(ctx)
	if err != nil {
		return err
	}
	now := nowOf[f.cfg.Dialect]
	for _, name := range f.engine.Tables.Names() {
		r, shape := all[name], text(by[name].shape)
		if len(r.mine) == 0 {
			err = f.do(ctx, join("INSERT INTO ", defaultTable, " (tbl, op, old_row, new_row, at_ms) VALUES (", f.cfg.Dialect.text(name), ", ", text(reading), ", ", text(cache), ", ", shape, ", ", now, ")"))
		} else {
			err = f.do(ctx, join("UPDATE ", defaultTable, " SET new_row = ", shape, ", at_ms = ", now, " WHERE id IN (", strings.Join(r.mine, ","), ")"))
		}
		if len(r.gone) > 0 && err == nil {
			err = f.do(ctx, join("DELETE FROM ", defaultTable, " WHERE id IN (", strings.Join(r.gone, ","), ")"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) do(ctx context.Context, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := f.db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("cdc/outbox: say who reads the outbox: %w", err)
	}
	return nil
}

// stranger returns an error if a feed of another cache reads rows of a mapped table.
func (f *Feed) stranger(ctx context.Context) error {
	all, now, err := f.readers(ctx)
	if err != nil {
		return err
	}
	var shared []string
	for _, name := range f.engine.Tables.Names() {
		if f.shared(all[name], now) {
			shared = append(shared, name)
		}
	}
	if len(shared) > 0 {
		return errShared(shared)
	}
	return nil
}

// known returns why an empty outbox does not say that everything is invalidated.
func (f *Feed) known(ctx context.Context, by map[string]*noted) error {
	if err := f.stranger(ctx); err != nil {
		return err
	}
	_, others, err := f.compare(ctx, by)
	if err == nil && len(others) > 0 {
		err = errNotYet
	}
	return err
}
