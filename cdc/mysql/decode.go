package mysql

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// decoder turns the events of the log into parts. The server writes a transaction into the log when it commits, so a part may be invalidated
// before its end is read.
type decoder struct {
	engine  *engine.Engine
	columns func(ctx context.Context, database, table string) (schema, error) // of a table, as of now
	put     func(context.Context, *engine.Part[place]) error

	at     place               // after the last event
	part   *engine.Part[place] // of the transaction that is read; nil: between transactions
	single bool                // it has one event, which ends it
	rows   int                 // of the transaction

	schemas map[*engine.Table]schema // which no statement has changed since they were asked for
}

func (d *decoder) event(ctx context.Context, e *replication.BinlogEvent) error {
	committed := time.Unix(int64(e.Header.Timestamp), 0)
	if e.Header.LogPos > d.at.pos {
		d.at.pos = e.Header.LogPos
	}
	switch event := e.Event.(type) {
	case *replication.RotateEvent:
		if name := string(event.NextLogName); name != d.at.file {
			d.at.file, d.at.pos, d.at.born = name, uint32(event.Position), 0 // files are smaller
		}
		return d.idle(ctx, time.Time{})
	case *replication.FormatDescriptionEvent: // each file begins with one, and the server sends it wherever a reader begins
		if d.at.born != 0 && d.at.born != e.Header.Timestamp {
			return errAnew
		}
		d.at.born = e.Header.Timestamp
		return d.idle(ctx, time.Time{})
	case *replication.MariadbGTIDEvent:
		d.part, d.rows, d.single = new(engine.Part[place]), 0, event.IsStandalone()
		return nil
	case *replication.RowsEvent:
		return d.changes(ctx, event, committed)
	case *replication.QueryEvent:
		return d.query(ctx, event, committed)
	case *replication.XIDEvent:
		return d.commit(ctx, committed)
	}
	switch e.Header.EventType {
	case replication.EXECUTE_LOAD_QUERY_EVENT, replication.LOAD_EVENT:
		return d.whole(ctx, d.engine.Tables.All(), committed)
	case replication.XA_PREPARE_LOG_EVENT:
		return d.commit(ctx, committed)
	case replication.HEARTBEAT_EVENT: // there is nothing more
		return d.idle(ctx, time.Now())
	}
	return d.idle(ctx, time.Time{})
}

// idle notes, between transactions, that nothing is left before the place. since is when, if that is known.
func (d *decoder) idle(ctx context.Context, since time.Time) error {
	if d.part != nil {
		return nil
	}
	return d.put(ctx, &engine.Part[place]{Until: d.at, Ends: true, Committed: since})
}

func (d *decoder) commit(ctx context.Context, committed time.Time) error {
	part := d.part
	if part == nil {
		return errors.New("cdc/mysql: the log has an end without a beginning")
	}
	d.part = nil
	part.Until, part.Ends, part.Committed = d.at, true, committed
	if part.Len() > 0 {
		part.Marks = []uint64{d.at.number()}
	}
	if d.rows > 0 {
		part.Transactions = 1
	}
	return d.put(ctx, part)
}

// changes adds the changes of rows.
func (d *decoder) changes(ctx context.Context, e *replication.RowsEvent, committed time.Time) error {
	table := d.engine.Tables[nameOf(e)]
	if table == nil {
		return nil
	}
	if d.part == nil {
		return errors.New("cdc/mysql: the log has rows outside of a transaction")
	}
	columns := e.Table.ColumnNameString()
	if len(columns) == 0 { // without binlog_row_metadata = FULL
		d.part.AddWhole(table)
		return nil
	}
	known, err := d.schema(ctx, table, e)
	if err != nil {
		return err
	}
	if why := known.fits(e, columns); why != nil {
		d.engine.Unmappable(cdc.Op(e.Type().String()), &cdc.RowError{Table: table.Name, Err: why})
		d.part.AddWhole(table)
		return nil //nolint:nilerr // it is noted
	}
	rows := rowsOf(e, columns, known)
	for i := 0; i < len(rows); i++ {
		change := cdc.Change{Op: cdc.Op(e.Type().String()), Committed: committed}
		switch change.Op {
		case cdc.Insert:
			change.New = rows[i]
		case cdc.Delete:
			change.Old = rows[i]
		case cdc.Update:
			change.Old, change.New = rows[i], rows[i+1]
			i++
		}
		d.part.Change(d.engine, table, change)
		d.rows++
	}
	if d.part.Len() < engine.MaxNames {
		return nil
	}
	part := d.part
	part.Marks = []uint64{d.at.number()} // a snapshot behind it is behind its transaction
	d.part = new(engine.Part[place])
	return d.put(ctx, part)
}

// schema returns the columns of a table. They may be those of later than the event; then a statement that changes them follows in the log, and invalidates whole.
func (d *decoder) schema(ctx context.Context, table *engine.Table, e *replication.RowsEvent) (schema, error) {
	if known, there := d.schemas[table]; there {
		return known, nil
	}
	known, err := d.columns(ctx, string(e.Table.Schema), string(e.Table.Table))
	if err != nil {
		return nil, err
	}
	if d.schemas == nil {
		d.schemas = make(map[*engine.Table]schema)
	}
	d.schemas[table] = known
	return known, nil
}

var (
	boundary   = regexp.MustCompile(`(?i)^\s*(BEGIN|START|SAVEPOINT|RELEASE|XA\s+(START|END))\b`)
	ending     = regexp.MustCompile(`(?i)^\s*(COMMIT|ROLLBACK|XA\s+ROLLBACK)\b`)
	definition = regexp.MustCompile(`(?i)^\s*(/\*.*?\*/\s*)?(CREATE|ALTER|DROP|TRUNCATE|RENAME|GRANT|REVOKE|ANALYZE|OPTIMIZE|REPAIR|FLUSH|SET)\b`)
)

// query adds what a statement may change: a definition changes the tables that it mentions, and any other statement, but for the boundaries of transactions,
// all tables. One of those is XA COMMIT: its rows were logged at XA PREPARE, when nobody saw them yet.
func (d *decoder) query(ctx context.Context, e *replication.QueryEvent, committed time.Time) error {
	text := string(e.Query)
	switch {
	case boundary.MatchString(text) || strings.HasPrefix(strings.ToUpper(text), "ROLLBACK TO"):
		return nil
	case ending.MatchString(text):
		return d.commit(ctx, committed)
	case definition.MatchString(text):
		return d.whole(ctx, d.mentioned(strings.ToLower(text), strings.ToLower(string(e.Schema))), committed)
	}
	return d.whole(ctx, d.engine.Tables.All(), committed)
}

// mentioned returns the tables that a statement may be about: those whose database and whose name it mentions, and all of a database that it is about.
func (d *decoder) mentioned(text, schema string) (tables []*engine.Table) {
	for _, table := range d.engine.Tables.All() {
		database, name, _ := strings.Cut(strings.ToLower(table.Name), ".")
		here := schema == database || mentions(text, database)
		if here && (mentions(text, name) || strings.Contains(text, "database") || strings.Contains(text, "schema")) {
			tables = append(tables, table)
		}
	}
	return tables
}

// mentions reports whether a statement may mention a name: quotes may stand in it twice, and letters beyond ASCII in the charset of the session.
func mentions(text, name string) bool {
	foreign := func(r rune) bool { return r >= utf8.RuneSelf }
	return strings.ContainsFunc(name, foreign) && strings.ContainsFunc(text, foreign) || strings.Contains(unquoted.Replace(text), unquoted.Replace(name))
}

var unquoted = strings.NewReplacer("`", "", `"`, "")

// errAnew says that a log has the names of another one.
var errAnew = errors.New("the log was begun anew, as by RESET MASTER")

// whole adds tables whose changed rows are not known.
func (d *decoder) whole(ctx context.Context, tables []*engine.Table, committed time.Time) error {
	if d.part == nil {
		d.part, d.single = new(engine.Part[place]), true
	}
	for _, table := range tables {
		delete(d.schemas, table)
	}
	d.part.AddWhole(tables...)
	if !d.single {
		return nil
	}
	return d.commit(ctx, committed)
}
