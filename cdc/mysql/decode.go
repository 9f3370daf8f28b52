package mysql

import (
	"context"
	"errors"
	"slices"
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

	merges  merges
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
	switch kind := e.Header.EventType; {
	case kind == replication.XA_PREPARE_LOG_EVENT:
		return d.commit(ctx, committed)
	case kind == replication.HEARTBEAT_EVENT: // there is nothing more
		return d.idle(ctx, time.Now())
	case slices.Contains(harmless, kind):
		return d.idle(ctx, time.Time{})
	}
	return d.whole(ctx, d.engine.Tables.All(), committed) // such as LOAD DATA, or INCIDENT_EVENT: the server has lost some
}

// harmless are the other events without changes.
var harmless = []replication.EventType{
	replication.TABLE_MAP_EVENT, replication.MARIADB_ANNOTATE_ROWS_EVENT, replication.MARIADB_GTID_LIST_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT,
	replication.MARIADB_START_ENCRYPTION_EVENT, replication.INTVAR_EVENT, replication.RAND_EVENT, replication.USER_VAR_EVENT, replication.STOP_EVENT,
	replication.BEGIN_LOAD_QUERY_EVENT, replication.APPEND_BLOCK_EVENT, replication.CREATE_FILE_EVENT, replication.DELETE_FILE_EVENT, replication.IGNORABLE_EVENT,
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
		others, err := d.merges.of(ctx, d.engine.Tables, e)
		if err == nil && len(others) > 0 && d.part != nil {
			d.part.AddWhole(others...)
		}
		return err
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

// query adds what a statement may change: one that is known to write only what it names changes the tables that it mentions, and any other one, but for the boundaries of
// transactions, all tables. One of those is XA COMMIT: its rows were logged at XA PREPARE, when nobody saw them yet.
func (d *decoder) query(ctx context.Context, e *replication.QueryEvent, committed time.Time) error {
	text := string(e.Query)
	if boundary.MatchString(text) {
		return nil
	}
	if ending.MatchString(text) {
		return d.commit(ctx, committed)
	}
	if text = strings.ToLower(text); onlyNamed(text) {
		tables := d.mentioned(text, strings.ToLower(string(e.Schema)))
		loose, err := d.merges.may(ctx, d.engine.Tables)
		if err != nil {
			return err
		}
		d.merges.forget(len(tables) > 0)
		return d.whole(ctx, append(tables, loose...), committed)
	}
	d.merges.forget(true)
	return d.whole(ctx, d.engine.Tables.All(), committed)
}

// mentioned returns the tables that a statement may be about: those whose database and whose name it mentions, all of a database that it is about, and those of
// database mysql, which has the users, rights and procedures.
func (d *decoder) mentioned(text, schema string) (tables []*engine.Table) {
	for _, table := range d.engine.Tables.All() {
		database, name, _ := strings.Cut(strings.ToLower(table.Name), ".")
		here := schema == database || mentions(text, database)
		if database == "mysql" || here && (mentions(text, name) || strings.Contains(text, "database") || strings.Contains(text, "schema")) {
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
