package engine

import (
	"errors"
	"time"

	"github.com/cacheguard/go/cdc"
)

// Unmappable notes a changed row whose keys are not known. The log gets a line for the first one, and one every now and then for those that follow.
func (e *Engine) Unmappable(op cdc.Op, err error) {
	e.mu.Lock()
	e.stats.Unmapped++
	e.unmapped++
	rows, now := e.unmapped, time.Now()
	says := now.Sub(e.unmappedSaid) >= sayAgain
	if says {
		e.unmapped, e.unmappedSaid = 0, now
	}
	e.mu.Unlock()
	if says {
		e.Log.Error("cdc: the keys of a changed row are not known, so the kinds of its table are invalidated whole", "error", err, "statement", op, "rows", rows)
	}
}

// Try calls Changed of a table as changes of each kind do, with rows that do not exist, and returns what it asks for that the log will not have. before and
// after make such rows, whose columns have values of the right types. Other errors do not count, as it is no wonder that Changed makes nothing of these rows.
func (t *Table) Try(before, after func() cdc.Row) error {
	for _, c := range []cdc.Change{{Op: cdc.Insert, New: after()}, {Op: cdc.Update, Old: before(), New: after()}, {Op: cdc.Delete, Old: before()}} {
		_, err := t.Changes(c)
		if _, missing := errors.AsType[*cdc.ColumnError](err); missing {
			return err
		}
	}
	return nil
}
