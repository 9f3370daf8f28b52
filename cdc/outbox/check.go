package outbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

// SelfCheck returns what keeps the feed from working, joined, each with what mends it: a missing outbox, missing triggers, columns that the triggers do not note
// or whose values the outbox does not have as they are, columns of keys that have several texts, rows of tables that are not mapped, a feed of another cache that reads rows of mapped ones. It changes nothing. nil: the feed can work.
func (f *Feed) SelfCheck(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	unmapped, err := f.texts(ctx, join("SELECT DISTINCT tbl FROM ", defaultTable, " WHERE op <> ", text(reading), " AND NOT (", f.of, ") ORDER BY tbl LIMIT 10"))
	if err != nil {
		return fmt.Errorf("cdc/outbox: read the outbox (if it is not there, mend with: %s): %w", strings.Join(CreateTable(f.cfg.Dialect), "; "), err)
	}
	var problems []error
	for _, row := range unmapped {
		problems = append(problems, fmt.Errorf("cdc/outbox: the outbox has rows of table %s, which is not among Tables here (another version of the program may map it)", row[0]))
	}
	noted, err := f.look(ctx)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	for _, table := range f.engine.Tables.All() {
		n := noted[table.Name]
		problems = append(problems, n.missing(table.Name))
		if len(n.columns) > 0 {
			problems = append(problems, n.try(table), f.spelled(ctx, table, n))
		}
	}
	return errors.Join(append(problems, f.blind(ctx, noted), f.stranger(ctx))...)
}

// noted is what the outbox gets of a table.
type noted struct {
	lacking []string          // triggers, with their tables
	columns []string          // that the triggers note
	refused map[string]string // of them, those whose values are not what a query returns, with their types
	unseen  string            // why its rows may change without its triggers; empty: they do not
	inFiles bool              // the server says which file it has, so that it is seen if another one takes its place
	zeros   map[string]int    // of them, the digits of MySQL's ZEROFILL
	floats  bool              // numbers with a fraction are SQLite's, of which a query may return another text
	order   binary.ByteOrder  // of SQLite's texts, if they are in UTF-16
	shape   string            // changes with what the database has of the table, its triggers included
}

// missing says which triggers are missing, or why they do not see all.
func (n *noted) missing(table string) error {
	if n.unseen != "" {
		return fmt.Errorf("cdc/outbox: table %s changes without its triggers: %s", table, n.unseen)
	}
	if len(n.lacking) == 0 {
		return nil
	}
	return fmt.Errorf("cdc/outbox: table %s has no trigger %s (mend with the statements of outbox.Triggers)", table, strings.Join(n.lacking, ", "))
}

// try returns which columns Changed asks for that the triggers do not note, or not as they are.
func (n *noted) try(table *engine.Table) error {
	row := func() cdc.Row {
		return cdc.NewRow(n.columns, func(i int) (any, error) { return n.value(n.columns[i], "1") })
	}
	if err := table.Try(row, row); err != nil {
		return fmt.Errorf("cdc/outbox: changes of %s would invalidate its kinds whole: %w", table.Name, err)
	}
	return nil
}

// value is a value of a column, unless it is not known for certain.
func (n *noted) value(column string, v any) (any, error) {
	if n != nil && n.refused[column] != "" {
		return nil, errors.New("the outbox does not have values of type " + n.refused[column] + " as a query returns them")
	}
	v, err := n.valueOf(v)
	if err == nil && n != nil && n.zeros[column] > 0 && v != nil {
		v = fmt.Sprintf("%0*d", n.zeros[column], v)
	}
	return v, err
}

// exact are the types whose values the triggers' JSON has as a query returns them.
var exact = map[Dialect][]string{
	PostgreSQL: strings.Fields("int2 int4 int8 text varchar name uuid bool numeric citext enum"),
	MySQL:      strings.Fields("tinyint smallint mediumint int bigint decimal char varchar tinytext text mediumtext longtext enum set uuid inet4 inet6"),
}

// look asks for the triggers, and for the types of the columns that they note.
func (f *Feed) look(ctx context.Context) (map[string]*noted, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all := make(map[string]*noted)
	for _, name := range f.engine.Tables.Names() {
		all[name] = &noted{refused: make(map[string]string), zeros: make(map[string]int)}
	}
	triggers, types := eachTriggers[f.cfg.Dialect], "SELECT table_name, column_name, data_type, ordinal_position, column_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name IN ("+f.names()+") ORDER BY 1, 4"
	if f.cfg.Dialect == PostgreSQL {
		triggers, types = treeOf(f.engine.Tables.Names()), typesOf(f.engine.Tables.Names())
	}
	rows, err := f.texts(ctx, triggers)
	if err != nil {
		return nil, fmt.Errorf("cdc/outbox: look for triggers: %w", err)
	}
	for name, n := range all {
		if f.cfg.Dialect == PostgreSQL {
			n.takeTree(name, rows)
		} else {
			n.takeEach(name, rows)
		}
	}
	if f.cfg.Dialect == SQLite {
		return all, f.encoded(ctx, all) // its values have types, and its columns have none; all tables have one shape
	}
	if f.cfg.Dialect == MySQL {
		if err := f.takeFiles(ctx, all); err != nil {
			return nil, err
		}
	}
	if rows, err = f.texts(ctx, types); err != nil {
		return nil, fmt.Errorf("cdc/outbox: look for the types of columns: %w", err)
	}
	for _, row := range rows {
		n := all[row[0]]
		if n == nil {
			continue
		}
		if !slices.Contains(exact[f.cfg.Dialect], row[2]) {
			n.refused[row[1]] = row[2]
		}
		if f.cfg.Dialect == MySQL && strings.HasSuffix(row[4], "zerofill") {
			digits := 0
			_, _ = fmt.Sscanf(row[4], row[2]+"(%d)", &digits) // the server writes it so
			n.zeros[row[1]] = digits
		}
		n.form(row[1:]...)
	}
	return all, nil
}

// names are the names of the mapped tables, as SQL.
func (f *Feed) names() string {
	var all []string
	for _, name := range f.engine.Tables.Names() {
		all = append(all, f.cfg.Dialect.text(name))
	}
	return strings.Join(all, ", ")
}

// form adds to the shape.
func (n *noted) form(texts ...string) {
	sum := fnv.New64a()
	_, _ = fmt.Fprint(sum, n.shape, texts) // it never fails
	n.shape = strconv.FormatUint(sum.Sum64(), 36)
}

// eachTriggers has the triggers of a database: their names, tables and texts, and what is different when they, or the table, were dropped and created.
var eachTriggers = map[Dialect]string{
	MySQL: "SELECT trigger_name, event_object_table, action_statement, concat(coalesce(g.created, ''), ' ', coalesce(t.create_time, '')) FROM information_schema.triggers g " +
		"LEFT JOIN information_schema.tables t ON t.table_schema = event_object_schema AND t.table_name = event_object_table WHERE trigger_schema = DATABASE() ORDER BY 1",
	SQLite: "SELECT name, tbl_name, sql, schema_version FROM sqlite_master, pragma_schema_version WHERE type = 'trigger' ORDER BY 1",
}

// takeEach notes which triggers a table has: of a table that was renamed, they go with it.
func (n *noted) takeEach(table string, rows [][]string) {
	for _, event := range events {
		name := trigger(table, event)
		i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == name && strings.EqualFold(row[1], table) })
		if i < 0 {
			n.lacking = append(n.lacking, name)
			continue
		}
		n.take(rows[i][2])
		n.form(rows[i][3])
	}
}

// treeOf asks for the tables of names, their partitions and children at any depth, and whether each has both triggers, which always fire. A crash empties unlogged
// tables, and begins the server's statistics anew.
func treeOf(tables []string) string {
	var wanted []string
	for _, name := range tables {
		wanted = append(wanted, fmt.Sprintf("(%s, %s, %s, %s)", PostgreSQL.text(name), PostgreSQL.text(PostgreSQL.quote(name)), PostgreSQL.text(trigger(name, "row")), PostgreSQL.text(trigger(name, "truncate"))))
	}
	return join(`WITH RECURSIVE tree AS (SELECT name, to_regclass(quoted)::oid AS id, row_trigger, truncate_trigger
			FROM (VALUES `, strings.Join(wanted, ", "), `) AS wanted(name, quoted, row_trigger, truncate_trigger)
		UNION SELECT t.name, i.inhrelid, t.row_trigger, t.truncate_trigger FROM tree t JOIN pg_inherits i ON i.inhparent = t.id)
		SELECT t.name, c.oid::regclass::text, c.relkind::text, coalesce(max(p.prosrc), ''),
			(bool_or(g.tgname = t.row_trigger) IS TRUE)::text, (bool_or(g.tgname = t.truncate_trigger) IS TRUE)::text,
			md5(format('%s %s %s %s %s %s', c.oid, CASE c.relpersistence WHEN 'u' THEN (SELECT stats_reset FROM pg_stat_bgwriter) END, (SELECT xmin FROM pg_type WHERE oid = c.reltype), string_agg(format('%s.%s', g.oid, g.xmin), ' ' ORDER BY g.oid),
				(SELECT string_agg(format('%s.%s', inhparent, xmin), ' ' ORDER BY inhparent) FROM pg_inherits WHERE inhrelid = c.oid),
				(SELECT string_agg(format('%s.%s', attnum, xmin), ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0)))
		FROM tree t JOIN pg_class c ON c.oid = t.id
		LEFT JOIN (pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid) ON g.tgrelid = c.oid AND g.tgenabled = 'A' AND g.tgname IN (t.row_trigger, t.truncate_trigger)
		GROUP BY t.name, c.oid, c.relkind, c.reltype ORDER BY 1, 2`)
}

// takeTree notes which triggers a table and its partitions and children have.
func (n *noted) takeTree(table string, rows [][]string) {
	found := false
	for _, row := range rows {
		if row[0] != table {
			continue
		}
		found = true
		if row[4] != "true" {
			n.lacking = append(n.lacking, trigger(table, "row")+" on "+row[1])
		}
		if row[5] != "true" {
			n.lacking = append(n.lacking, trigger(table, "truncate")+" on "+row[1])
		}
		n.take(row[3])
		n.form(row[6])
	}
	if !found {
		n.lacking = append(n.lacking, trigger(table, "row"))
	}
}

// typesOf asks for the types of the columns of tables: of domains their bases, and of enums the word.
func typesOf(tables []string) string {
	var wanted []string
	for _, name := range tables {
		wanted = append(wanted, fmt.Sprintf("(%s, %s)", PostgreSQL.text(name), PostgreSQL.text(PostgreSQL.quote(name))))
	}
	return join(`WITH RECURSIVE columns AS (SELECT w.name, a.attname, a.atttypid AS type
			FROM (VALUES `, strings.Join(wanted, ", "), `) AS w(name, quoted) JOIN pg_attribute a ON a.attrelid = to_regclass(w.quoted) AND a.attnum > 0 AND NOT a.attisdropped
		UNION SELECT c.name, c.attname, t.typbasetype FROM columns c JOIN pg_type t ON t.oid = c.type AND t.typtype = 'd')
		SELECT c.name, c.attname::text, CASE t.typtype WHEN 'e' THEN 'enum' ELSE t.typname::text END FROM columns c JOIN pg_type t ON t.oid = c.type WHERE t.typtype <> 'd' ORDER BY 1, 2, 3`)
}

// pair is a column in the JSON of a trigger.
var pair = regexp.MustCompile(`'((?:[^']|'')+)', (?:CASE typeof\()?(?:OLD|NEW)\.`)

// take notes the columns that the text of a trigger names.
func (n *noted) take(source string) {
	for _, found := range pair.FindAllStringSubmatch(source, -1) {
		if column := strings.ReplaceAll(found[1], "''", "'"); !slices.Contains(n.columns, column) {
			n.columns = append(n.columns, column)
		}
	}
}

// texts are the texts of a query.
func (f *Feed) texts(ctx context.Context, query string) (all [][]string, err error) {
	rows, err := f.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
