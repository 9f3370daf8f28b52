package outbox

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// everything is the table of a row that stands for all tables.
const everything = "*"

// querier is a transaction, or a database without one.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// empty invalidates a batch of rows and deletes them, and reports whether there may be more.
func (f *Feed) empty(ctx context.Context) (more bool, err error) {
	if f.cfg.Dialect == SQLite {
		return f.emptyIn(ctx, f.db, "") // a transaction would keep others from writing
	}
	// Without a lock on gaps, which MySQL otherwise takes, and which writers would wait for.
	tx, err := f.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return false, fmt.Errorf("cdc/outbox: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if more, err = f.emptyIn(ctx, tx, " FOR UPDATE SKIP LOCKED"); err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("cdc/outbox: %w", err)
	}
	return more, nil
}

func (f *Feed) emptyIn(ctx context.Context, db querier, lock string) (more bool, err error) {
	began := time.Now()
	part, ids, err := f.read(ctx, db, lock)
	if err != nil {
		return false, err
	}
	more = len(ids) == f.size
	if !more {
		part.Committed = began
	}
	part.Dedupe()
	if part.Len() > 0 {
		if err := f.engine.Invalidate(ctx, part.Names, part.Whole); err != nil {
			return false, fmt.Errorf("cdc/outbox: invalidate: %w", err)
		}
	}
	// They are counted before they are gone: then CatchUp may return.
	f.engine.Reading(true, part.Committed)
	f.engine.Applied(part.Rows, 0, len(part.Names.Keys)+len(part.Names.Tags), len(part.Whole), part.Committed)
	if len(ids) > 0 {
		if _, err := db.ExecContext(ctx, join("DELETE FROM ", defaultTable, " WHERE id IN (", strings.Join(ids, ","), ")")); err != nil {
			return false, fmt.Errorf("cdc/outbox: delete what is invalidated: %w", err)
		}
	}
	return more, nil
}

// read reads a batch.
func (f *Feed) read(ctx context.Context, db querier, lock string) (*engine.Part[int64], []string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := db.QueryContext(ctx, join("SELECT id, tbl, op, old_row, new_row, at_ms FROM ", defaultTable, " WHERE ", f.of, " ORDER BY id LIMIT ", number(int64(f.size)), lock))
	if err != nil {
		return nil, nil, fmt.Errorf("cdc/outbox: read the outbox: %w", err)
	}
	defer rows.Close()
	part := new(engine.Part[int64])
	var ids []string
	for rows.Next() {
		var id, at int64
		var table, op string
		var before, after sql.NullString
		if err := rows.Scan(&id, &table, &op, &before, &after, &at); err != nil {
			return nil, nil, fmt.Errorf("cdc/outbox: read the outbox: %w", err)
		}
		ids = append(ids, number(id))
		part.Committed = time.UnixMilli(at)
		f.add(part, table, op, before, after, part.Committed)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, fmt.Errorf("cdc/outbox: read the outbox: %w", err)
	}
	return part, ids, nil
}

// add adds what a row of the outbox says.
func (f *Feed) add(part *engine.Part[int64], name, op string, before, after sql.NullString, at time.Time) {
	if name == everything {
		part.Rows++
		part.AddWhole(f.engine.Tables.All()...)
		return
	}
	table := f.engine.Tables[name]
	if op == "truncate" {
		part.Rows++
		part.AddWhole(table)
		return
	}
	change := cdc.Change{Op: cdc.Op(op), Committed: at}
	var err error
	if change.Old, err = rowOf(before, f.noted[name]); err == nil {
		change.New, err = rowOf(after, f.noted[name])
	}
	if err != nil {
		f.engine.Unmappable(change.Op, &cdc.RowError{Table: name, Err: err})
		part.Rows++
		part.AddWhole(table)
		return
	}
	part.Change(f.engine, table, change)
}

// rowOf reads a row. NULL is one that is not there.
func rowOf(text sql.NullString, n *noted) (cdc.Row, error) {
	if !text.Valid {
		return cdc.Row{}, nil
	}
	if !utf8.ValidString(text.String) {
		return cdc.Row{}, errors.New("the outbox has a text that is no UTF-8 (mend with the statements of outbox.Triggers)")
	}
	var values map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text.String)))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return cdc.Row{}, fmt.Errorf("the outbox has no row: %w", err)
	}
	columns := slices.Sorted(maps.Keys(values))
	return cdc.NewRow(columns, func(i int) (any, error) { return n.value(columns[i], values[columns[i]]) }), nil
}

func (n *noted) valueOf(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if plain := err == nil && strconv.FormatFloat(f, 'g', -1, 64) == v.String(); n != nil && n.floats && !plain {
			return f, nil
		}
		return v.String(), nil
	}
	if object, is := v.(map[string]any); is && len(object) == 1 { // SQLite's triggers write bytes so, and texts that are not plain
		if digits, is := object["hex"].(string); is {
			return hex.DecodeString(digits)
		}
		if digits, is := object["text"].(string); is {
			b, err := hex.DecodeString(digits)
			return n.decoded(b), err
		}
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// decoded is a text in the encoding of SQLite's database.
func (n *noted) decoded(b []byte) string {
	if n == nil || n.order == nil {
		return string(b)
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = n.order.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// encoded asks SQLite for that.
func (f *Feed) encoded(ctx context.Context, all map[string]*noted) error {
	rows, err := f.texts(ctx, "PRAGMA encoding")
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, n := range all {
		n.floats = true
		n.order = map[string]binary.ByteOrder{"UTF-16le": binary.LittleEndian, "UTF-16be": binary.BigEndian}[rows[0][0]]
	}
	return nil
}

// watch looks at the triggers, and who else reads. A table without triggers changes and nobody says so, or another feed takes its rows: its kinds are invalidated whole at each
// look, until that is over.
func (f *Feed) watch(ctx context.Context) error {
	noted, err := f.look(ctx)
	if err != nil {
		return err
	}
	shared, others, err := f.compare(ctx, noted)
	if err != nil {
		return err
	}
	var problems []error
	tables := f.engine.Tables.Of(shared)
	if len(shared) > 0 {
		problems = append(problems, errShared(shared))
	}
	for _, table := range f.engine.Tables.All() {
		if err := noted[table.Name].missing(table.Name); err != nil {
			problems, tables = append(problems, err), append(tables, table) // twice does no harm
		}
	}
	standing := errors.Join(problems...)
	if standing != nil {
		err = f.engine.WholeOf(ctx, standing.Error(), tables)
	}
	if len(others) > 0 && err == nil {
		err = f.engine.WholeOf(ctx, "they are read for the first time, or are other tables, or have other columns, partitions or triggers than before: "+strings.Join(others, ", "), f.engine.Tables.Of(others))
	}
	if err == nil {
		err = f.claim(ctx, noted)
	}
	if err != nil {
		return err
	}
	f.noted = noted
	f.engine.Stands(standing)
	return nil
}

// bound gives up an outbox that has too many rows.
func (f *Feed) bound(ctx context.Context) error {
	if f.cfg.MaxRows < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 6*timeout)
	defer cancel()
	var n int
	counted := join("SELECT count(*) FROM (SELECT 1 FROM ", defaultTable, " WHERE ", f.of, " LIMIT ", number(int64(f.cfg.MaxRows)+1), ") AS few")
	if err := f.db.QueryRowContext(ctx, counted).Scan(&n); err != nil {
		return fmt.Errorf("cdc/outbox: count the outbox: %w", err)
	}
	if half := n > f.cfg.MaxRows/2; half != f.warned {
		if f.warned = half; half {
			f.cfg.Logger.Warn("cdc: the outbox has more than half of MaxRows", "rows", n, "MaxRows", f.cfg.MaxRows)
		}
	}
	if n <= f.cfg.MaxRows {
		return nil
	}
	f.cfg.Logger.Error("cdc: the outbox is given up", "why", "it has more than MaxRows", "MaxRows", f.cfg.MaxRows)
	if err := f.compact(ctx); err != nil {
		return fmt.Errorf("cdc/outbox: give up the outbox: %w", err)
	}
	return nil
}

// compact makes the first row one that stands for everything, and deletes the others. Others see that row when these are gone, so the instance that reads it
// invalidates what they were about. As it is the first, CatchUp waits for it.
func (f *Feed) compact(ctx context.Context) error {
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	if f.cfg.Dialect == SQLite {
		options = nil // it has one level
	}
	tx, err := f.db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var first sql.NullInt64
	if err := tx.QueryRowContext(ctx, join("SELECT min(id) FROM ", defaultTable, " WHERE ", f.of)).Scan(&first); err != nil || !first.Valid {
		return err
	}
	id := number(first.Int64)
	done, err := tx.ExecContext(ctx, join("UPDATE ", defaultTable, " SET tbl = ", text(everything), ", op = 'truncate', old_row = NULL, new_row = NULL WHERE id = ", id))
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err // another instance has invalidated it in between; the next look counts again
	}
	if _, err := tx.ExecContext(ctx, join("DELETE FROM ", defaultTable, " WHERE id <> ", id, " AND ", f.of)); err != nil {
		return err
	}
	return tx.Commit()
}

// mapped is the SQL condition for rows about the tables, and for the row that stands for all tables.
func (f *Feed) mapped() string {
	return "op <> " + text(reading) + " AND tbl IN (" + text(everything) + ", " + f.names() + ")"
}

// join puts SQL together, of names and numbers that the package has made.
func join(parts ...string) string { return strings.Join(parts, "") }

func number(n int64) string { return strconv.FormatInt(n, 10) }
