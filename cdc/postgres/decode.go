package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// mark is the prefix of the messages that CatchUp writes into the log.
const mark = "cacheguard"

// decoder turns the messages of pgoutput into parts. The database sends a transaction only after its commit, so a part may be invalidated before the
// end of its transaction is read.
type decoder struct {
	engine    *engine.Engine
	ids       map[uint32]*engine.Table // mapped tables by object id
	ancestors func(ctx context.Context, id uint32) (map[uint32]string, error)
	kinds     func(ctx context.Context, types []uint32) ([]kind, error)
	look      func(ctx context.Context) error // at what is published by now
	put       func(context.Context, *engine.Part[pglogrepl.LSN]) error

	relations map[uint32]*relation
	part      *engine.Part[pglogrepl.LSN] // of the transaction that is read; nil: between transactions
	xid       uint32
	committed time.Time
	rows      int // of the transaction
}

func (d *decoder) message(ctx context.Context, data []byte) error {
	message, err := pglogrepl.Parse(data)
	if err != nil {
		return fmt.Errorf("cdc/postgres: read the log: %w", err)
	}
	switch m := message.(type) {
	case *pglogrepl.BeginMessage:
		d.xid, d.committed, d.rows = m.Xid, m.CommitTime, 0
		d.begin()
	case *pglogrepl.RelationMessage:
		return d.relation(ctx, m)
	case *pglogrepl.InsertMessage:
		return d.row(ctx, m.RelationID, func(r *relation) cdc.Change {
			return cdc.Change{Op: cdc.Insert, New: r.newRow(m.Tuple, nil)}
		})
	case *pglogrepl.UpdateMessage:
		return d.row(ctx, m.RelationID, func(r *relation) cdc.Change {
			var full *pglogrepl.TupleData
			if m.OldTupleType == pglogrepl.UpdateMessageTupleTypeOld {
				full = m.OldTuple
			}
			return cdc.Change{Op: cdc.Update, Old: r.oldRow(m.OldTuple, full != nil, m.NewTuple), New: r.newRow(m.NewTuple, full)}
		})
	case *pglogrepl.DeleteMessage:
		return d.row(ctx, m.RelationID, func(r *relation) cdc.Change {
			return cdc.Change{Op: cdc.Delete, Old: r.oldRow(m.OldTuple, m.OldTupleType == pglogrepl.DeleteMessageTupleTypeOld, nil)}
		})
	case *pglogrepl.TruncateMessage:
		return d.truncate(ctx, m.RelationIDs)
	case *pglogrepl.LogicalDecodingMessage:
		if m.Prefix == mark { // somebody waits for what was committed before
			return d.look(ctx)
		}
	case *pglogrepl.CommitMessage:
		return d.commit(ctx, m.TransactionEndLSN)
	}
	return nil // of types and origins
}

func (d *decoder) begin() {
	d.part = &engine.Part[pglogrepl.LSN]{Committed: d.committed.Add(-time.Nanosecond), Marks: []uint64{uint64(d.xid)}}
}

// idle notes that the database has sent everything before a position.
func (d *decoder) idle(ctx context.Context, position pglogrepl.LSN) error {
	if d.part != nil {
		return nil
	}
	return d.put(ctx, &engine.Part[pglogrepl.LSN]{Until: position, Ends: true})
}

func (d *decoder) commit(ctx context.Context, end pglogrepl.LSN) error {
	part := d.part
	if part == nil {
		return errors.New("cdc/postgres: the log has an end without a beginning")
	}
	d.part = nil
	part.Until, part.Ends, part.Committed = end, true, d.committed
	if part.Len() == 0 {
		part.Marks = nil
	}
	if d.rows > 0 {
		part.Transactions = 1
	}
	return d.put(ctx, part)
}

// of returns the relation with an id, or nil if it is not mapped.
func (d *decoder) of(id uint32) (*relation, error) {
	r, known := d.relations[id]
	if !known || d.part == nil {
		return nil, fmt.Errorf("cdc/postgres: the log has a change of relation %d before it says what that is", id)
	}
	if len(r.tables) == 0 {
		return nil, nil // most relations of a database are not mapped
	}
	return r, nil
}

func (d *decoder) row(ctx context.Context, id uint32, change func(*relation) cdc.Change) error {
	r, err := d.of(id)
	if r == nil {
		return err
	}
	for _, table := range r.tables {
		c := change(r) // each has errors of its own
		c.Committed = d.committed
		d.part.Change(d.engine, table, c)
	}
	d.rows++
	return d.cut(ctx)
}

func (d *decoder) truncate(ctx context.Context, ids []uint32) error {
	for _, id := range ids {
		r, err := d.of(id)
		if err != nil {
			return err
		}
		if r != nil {
			d.rows++
			d.part.AddWhole(r.tables...)
		}
	}
	return d.cut(ctx)
}

// cut hands on a part of a large transaction.
func (d *decoder) cut(ctx context.Context) error {
	if d.part.Len() < engine.MaxNames {
		return nil
	}
	part := d.part
	d.begin()
	return d.put(ctx, part)
}

// relation notes the columns that a table has from here on, and which mapped tables it is, or is a partition or a child of: there may be several. The database sends
// a relation anew when that may have changed, so all of it is asked for again. A table is known by its object id, as it may be renamed; or else by its name,
// because it may be a new table in place of an old one.
func (d *decoder) relation(ctx context.Context, m *pglogrepl.RelationMessage) error {
	family, err := d.ancestors(ctx, m.RelationID)
	if err != nil {
		return err
	}
	family[m.RelationID] = m.Namespace + "." + m.RelationName
	r := newRelation(m)
	for id, name := range family {
		table := d.ids[id]
		if table == nil {
			table = d.engine.Tables[name]
		}
		if table != nil && !slices.Contains(r.tables, table) {
			r.tables = append(r.tables, table)
		}
	}
	if len(r.tables) > 0 {
		if r.kinds, err = d.kinds(ctx, r.types); err != nil {
			return err
		}
	}
	if d.relations == nil {
		d.relations = make(map[uint32]*relation)
	}
	d.relations[m.RelationID] = r
	return nil
}
