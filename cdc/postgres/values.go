package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// relation is a table, as the log has it.
type relation struct {
	name     string          // as SQL has it
	tables   []*engine.Table // mapped ones that it is, or belongs to
	columns  []string
	types    []uint32
	kinds    []kind // of the types, if it is mapped
	identity []bool // whether the log has the old value of the column
}

func newRelation(m *pglogrepl.RelationMessage) *relation {
	r := &relation{name: quote(m.Namespace + "." + m.RelationName)}
	for _, c := range m.Columns {
		r.columns = append(r.columns, c.Name)
		r.types = append(r.types, c.DataType)
		r.identity = append(r.identity, c.Flags&1 != 0)
	}
	return r
}

// notLogged says what to do about a value that is missing.
func (r *relation) notLogged() error {
	return fmt.Errorf("%w (mend with: ALTER TABLE %s REPLICA IDENTITY FULL)", cdc.ErrNotLogged, r.name)
}

// newRow is the row after a change. The log leaves out long values that have not changed; a full old row has them.
func (r *relation) newRow(tuple, full *pglogrepl.TupleData) cdc.Row {
	return cdc.NewRow(r.columns, func(i int) (any, error) {
		c, err := r.column(tuple, i)
		if err == nil && c.DataType == pglogrepl.TupleDataTypeToast && full != nil {
			c, err = r.column(full, i)
		}
		return r.value(i, c, err)
	})
}

// oldRow is the row before a change. If the log has none, the identity did not change, and the new row has it.
func (r *relation) oldRow(old *pglogrepl.TupleData, full bool, tuple *pglogrepl.TupleData) cdc.Row {
	if old == nil {
		old = tuple
	}
	return cdc.NewRow(r.columns, func(i int) (any, error) {
		if !full && i < len(r.identity) && !r.identity[i] {
			return nil, r.notLogged()
		}
		c, err := r.column(old, i)
		return r.value(i, c, err)
	})
}

func (r *relation) column(tuple *pglogrepl.TupleData, i int) (*pglogrepl.TupleDataColumn, error) {
	if tuple == nil || i >= len(tuple.Columns) {
		return nil, r.notLogged()
	}
	return tuple.Columns[i], nil
}

func (r *relation) value(i int, c *pglogrepl.TupleDataColumn, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case c.DataType == pglogrepl.TupleDataTypeNull:
		return nil, nil // that is NULL
	case c.DataType == pglogrepl.TupleDataTypeToast:
		return nil, r.notLogged()
	case c.DataType != pglogrepl.TupleDataTypeText:
		return nil, errors.New("the log has it in a format that was not asked for")
	}
	return r.kinds[i].parse(string(c.Data))
}

// moment keeps the text of what Go has no time for: infinity, and years before Christ.
func moment(layout, text string) (any, error) {
	t, err := time.Parse(layout, text)
	if err != nil {
		return text, nil //nolint:nilerr // see above
	}
	return t, nil
}
