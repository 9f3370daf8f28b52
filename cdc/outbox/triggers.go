package outbox

import (
	"fmt"
	"strings"
)

// Dialect is how a database wants its SQL.
type Dialect string

// The dialects.
const (
	PostgreSQL Dialect = "postgres" // 11 or later
	MySQL      Dialect = "mysql"    // MySQL 8.0 and MariaDB 10.6, or later
	SQLite     Dialect = "sqlite"   // 3.38 or later
)

const defaultTable = "cacheguard_outbox"

// CreateTable returns the statements that make the outbox, unless it is there.
func CreateTable(d Dialect) []string {
	switch d {
	case PostgreSQL:
		return []string{`CREATE TABLE IF NOT EXISTS cacheguard_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	tbl text NOT NULL, op text NOT NULL, old_row text, new_row text, at_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)`}
	case MySQL:
		return []string{`CREATE TABLE IF NOT EXISTS cacheguard_outbox (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
	tbl varchar(255) NOT NULL, op varchar(16) NOT NULL, old_row longtext, new_row longtext, at_ms bigint NOT NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`}
	case SQLite:
		return []string{`CREATE TABLE IF NOT EXISTS cacheguard_outbox (id integer PRIMARY KEY AUTOINCREMENT,
	tbl text NOT NULL, op text NOT NULL, old_row text, new_row text, at_ms integer NOT NULL)`}
	}
	return nil
}

// Triggers returns the statements that make the triggers of a table, in place of earlier ones. Name the columns that Table.Changed asks for: the
// triggers note those. In PostgreSQL, name the table with its schema if that is not in the search path of those who write; the feed's
// Table has the same name.
func Triggers(d Dialect, table string, columns ...string) []string {
	switch d {
	case PostgreSQL:
		return postgresTriggers(table, columns)
	case MySQL:
		return eachTrigger(d, table, columns, "DROP TRIGGER IF EXISTS %[1]s",
			"CREATE TRIGGER %[1]s AFTER %[2]s ON %[3]s FOR EACH ROW INSERT INTO cacheguard_outbox (tbl, op, old_row, new_row, at_ms) VALUES (%[4]s, %[5]s, %[6]s, %[7]s, "+
				"CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED))")
	case SQLite:
		return eachTrigger(d, table, columns, "DROP TRIGGER IF EXISTS %[1]s",
			"CREATE TRIGGER %[1]s AFTER %[2]s ON %[3]s BEGIN INSERT INTO cacheguard_outbox (tbl, op, old_row, new_row, at_ms) VALUES (%[4]s, %[5]s, %[6]s, %[7]s, "+
				"CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)); END")
	}
	return nil
}

// eachTrigger makes three triggers: the place in a format of the trigger's name, its event, the table, and the values of the outbox.
func eachTrigger(d Dialect, table string, columns []string, drop, create string) (statements []string) {
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		before, after := jsonOf(d, "OLD", columns), jsonOf(d, "NEW", columns)
		switch event {
		case "INSERT":
			before = "NULL"
		case "DELETE":
			after = "NULL"
		}
		for _, format := range []string{drop, create} {
			text := fmt.Sprintf(format+"%[8]s", d.quote(trigger(table, event)), event, d.quote(table), text(table), text(strings.ToLower(event)), before, after, "")
			statements = append(statements, text)
		}
	}
	return statements
}

func postgresTriggers(table string, columns []string) []string {
	d := PostgreSQL
	function := d.quote(trigger(table, "row"))
	body := fmt.Sprintf(`CREATE OR REPLACE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $cacheguard$ DECLARE old_row text; new_row text; BEGIN
	IF TG_OP IN ('UPDATE', 'DELETE') THEN old_row := %[2]s; END IF;
	IF TG_OP IN ('UPDATE', 'INSERT') THEN new_row := %[3]s; END IF;
	INSERT INTO cacheguard_outbox (tbl, op, old_row, new_row) VALUES (%[4]s, lower(TG_OP), old_row, new_row);
	RETURN NULL;
END $cacheguard$`, function, jsonOf(d, "OLD", columns), jsonOf(d, "NEW", columns), text(table))
	statements := []string{body}
	for _, t := range [][3]string{{"row", "INSERT OR UPDATE OR DELETE", "ROW"}, {"truncate", "TRUNCATE", "STATEMENT"}} {
		name, when, each := t[0], t[1], t[2]
		statements = append(statements,
			fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", d.quote(trigger(table, name)), d.quote(table)),
			fmt.Sprintf("CREATE TRIGGER %s AFTER %s ON %s FOR EACH %s EXECUTE FUNCTION %s()", d.quote(trigger(table, name)), when, d.quote(table), each, function))
	}
	return statements
}

// trigger is the name of a trigger.
func trigger(table, event string) string {
	return "cacheguard_" + strings.ReplaceAll(table, ".", "_") + "_" + strings.ToLower(event)
}

// jsonOf is an expression for columns of a row.
func jsonOf(d Dialect, row string, columns []string) string {
	function := map[Dialect]string{PostgreSQL: "jsonb_build_object", MySQL: "JSON_OBJECT", SQLite: "json_object"}[d]
	var pairs []string
	for _, column := range columns {
		pairs = append(pairs, text(column)+", "+row+"."+d.quote(column))
	}
	call := function + "(" + strings.Join(pairs, ", ") + ")"
	if d == PostgreSQL {
		call += "::text"
	}
	return call
}

// quote quotes a name, whose parts may be separated by dots.
func (d Dialect) quote(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	parts := strings.Split(name, ".")
	for i, part := range parts {
		parts[i] = mark + strings.ReplaceAll(part, mark, mark+mark) + mark
	}
	return strings.Join(parts, ".")
}

// text quotes a text.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
