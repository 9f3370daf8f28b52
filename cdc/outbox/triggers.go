package outbox

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
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

// nowOf is the time in milliseconds since 1970.
var nowOf = map[Dialect]string{
	PostgreSQL: "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
	MySQL:      "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
	SQLite:     "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}

// CreateTable returns the statements that make the outbox, unless it is there.
func CreateTable(d Dialect) []string {
	switch d {
	case PostgreSQL:
		return []string{`CREATE TABLE IF NOT EXISTS cacheguard_outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	tbl text NOT NULL, op text NOT NULL, old_row text, new_row text, at_ms bigint NOT NULL DEFAULT ` + nowOf[d] + `)`}
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
// triggers note those. In PostgreSQL, run them where the search path leads to the outbox and to the table, unless that is named with its schema, and again
// after a partition or a child was added; the feed's Table has the same name. Writers need no rights to the outbox, and no search path.
func Triggers(d Dialect, table string, columns ...string) []string {
	switch d {
	case PostgreSQL:
		return postgresTriggers(table, columns)
	case MySQL:
		return eachTrigger(d, table, columns, "DROP TRIGGER IF EXISTS %[1]s",
			"CREATE TRIGGER %[1]s AFTER %[2]s ON %[3]s FOR EACH ROW BEGIN\n"+
				"	DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO cacheguard_outbox (tbl, op, at_ms) VALUES (%[4]s, 'truncate', 0);\n"+
				"	INSERT INTO cacheguard_outbox (tbl, op, old_row, new_row, at_ms) VALUES (%[4]s, %[5]s, %[6]s, %[7]s, "+nowOf[d]+"); END")
	case SQLite:
		return eachTrigger(d, table, columns, "DROP TRIGGER IF EXISTS %[1]s",
			"CREATE TRIGGER %[1]s AFTER %[2]s ON %[3]s BEGIN INSERT INTO cacheguard_outbox (tbl, op, old_row, new_row, at_ms) VALUES (%[4]s, %[5]s, %[6]s, %[7]s, "+nowOf[d]+"); END")
	}
	return nil
}

// events have a trigger each, where there is none for several.
var events = []string{"INSERT", "UPDATE", "DELETE"}

// eachTrigger makes three triggers: the place in a format of the trigger's name, its event, the table, and the values of the outbox.
func eachTrigger(d Dialect, table string, columns []string, drop, create string) (statements []string) {
	for _, event := range events {
		before, after := jsonOf(d, "OLD", columns), jsonOf(d, "NEW", columns)
		switch event {
		case "INSERT":
			before = "NULL"
		case "DELETE":
			after = "NULL"
		}
		for _, format := range []string{drop, create} {
			text := fmt.Sprintf(format+"%[8]s", d.quote(trigger(table, event)), event, d.quote(table), d.text(table), text(strings.ToLower(event)), before, after, "")
			statements = append(statements, text)
		}
	}
	return statements
}

// postgresTriggers makes a function with the rights of its owner, and no search path: it finds the outbox by its schema. The triggers fire for rows that are
// replicated, too. Partitions have the triggers for rows of their table, but not that for TRUNCATE; and children have none.
func postgresTriggers(table string, columns []string) []string {
	d := PostgreSQL
	name := trigger(table, "row")
	function := fmt.Sprintf(`CREATE OR REPLACE FUNCTION %%s.%s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $cacheguard_body$
DECLARE op text := lower(TG_OP); old_row text; new_row text; BEGIN
	BEGIN
		IF TG_OP IN ('UPDATE', 'DELETE') THEN old_row := %s; END IF;
		IF TG_OP IN ('UPDATE', 'INSERT') THEN new_row := %s; END IF;
	EXCEPTION WHEN OTHERS THEN op := 'truncate'; old_row := NULL; new_row := NULL;
	END;
	INSERT INTO %%s.cacheguard_outbox (tbl, op, old_row, new_row) VALUES (%s, op, old_row, new_row);
	RETURN NULL;
END $cacheguard_body$`, percents(d.quote(name)), percents(jsonOf(d, "OLD", columns)), percents(jsonOf(d, "NEW", columns)), percents(d.text(table)))
	return []string{fmt.Sprintf(`DO $cacheguard$
DECLARE place text; member record; BEGIN
	SELECT quote_ident(n.nspname) INTO STRICT place FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'cacheguard_outbox'::regclass;
	EXECUTE format(%[1]s, place, place);
	FOR member IN WITH RECURSIVE tree AS (SELECT %[2]s::regclass::oid AS id UNION SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = tree.id)
		SELECT c.oid::regclass::text AS name, c.relispartition AND c.oid <> %[2]s::regclass AS part FROM tree JOIN pg_class c ON c.oid = tree.id
		WHERE c.relkind IN ('r', 'p') ORDER BY c.oid LOOP
		IF NOT member.part THEN
			EXECUTE format('DROP TRIGGER IF EXISTS %%I ON %%s', %[3]s, member.name);
			EXECUTE format('CREATE TRIGGER %%I AFTER INSERT OR UPDATE OR DELETE ON %%s FOR EACH ROW EXECUTE FUNCTION %%s.%%I()', %[3]s, member.name, place, %[3]s);
		END IF;
		EXECUTE format('DROP TRIGGER IF EXISTS %%I ON %%s', %[4]s, member.name);
		EXECUTE format('CREATE TRIGGER %%I AFTER TRUNCATE ON %%s FOR EACH STATEMENT EXECUTE FUNCTION %%s.%%I()', %[4]s, member.name, place, %[3]s);
		EXECUTE format('ALTER TABLE %%s ENABLE ALWAYS TRIGGER %%I', member.name, %[3]s);
		EXECUTE format('ALTER TABLE %%s ENABLE ALWAYS TRIGGER %%I', member.name, %[4]s);
	END LOOP;
END $cacheguard$`, d.text(function), d.text(d.quote(table)), d.text(name), d.text(trigger(table, "truncate")))}
}

// percents keeps what stands for itself from being a place in a format.
func percents(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// trigger is the name of a trigger, which databases cut or refuse if it is long. No two tables have the same.
func trigger(table, event string) string {
	name := strings.ReplaceAll(table, ".", "_")
	if name != table || len(name) > longestName {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(table)) // it never fails
		name = fmt.Sprintf("%s_%08x", strings.ToValidUTF8(name[:min(len(name), longestName)], ""), sum.Sum32())
	}
	return "cacheguard_" + name + "_" + strings.ToLower(event)
}

// longestName is how many bytes of a table's name the names of its triggers have.
const longestName = 32

// jsonOf is an expression for columns of a row.
func jsonOf(d Dialect, row string, columns []string) string {
	function := map[Dialect]string{PostgreSQL: "jsonb_build_object", MySQL: "JSON_OBJECT", SQLite: "json_object"}[d]
	var pairs []string
	for _, column := range columns {
		value := row + "." + d.quote1(column)
		if d == SQLite { // whose JSON has no bytes, and whose texts are not always what their encoding says
			odd := value + " GLOB " + notPlain + " OR instr(" + value + ", char(0)) > 0"
			value = "CASE typeof(" + value + ") WHEN 'blob' THEN json_object('hex', hex(" + value + ")) WHEN 'text' THEN CASE WHEN " + odd +
				" THEN json_object('text', hex(" + value + ")) ELSE " + value + " END ELSE " + value + " END"
		}
		pairs = append(pairs, d.text(column)+", "+value)
	}
	call := function + "(" + strings.Join(pairs, ", ") + ")"
	if d == PostgreSQL {
		call += "::text"
	}
	return call
}

// notPlain is the pattern *[^-]* with the first and the last character of ASCII around the hyphen: it has some other character.
const notPlain = "char(42, 91, 94, 1, 45, 127, 93, 42)"

// quote quotes a name, whose parts may be separated by dots.
func (d Dialect) quote(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		parts[i] = d.quote1(part)
	}
	return strings.Join(parts, ".")
}

// quote1 quotes a name that may have dots.
func (d Dialect) quote1(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}

// text quotes a text that may have backslashes, which escape what follows them on MySQL and, in some sessions, on PostgreSQL.
func (d Dialect) text(s string) string {
	switch {
	case !strings.Contains(s, `\`) || d == SQLite:
		return text(s)
	case d == MySQL:
		return "CONVERT(X'" + hex.EncodeToString([]byte(s)) + "' USING utf8mb4)"
	}
	return " E" + text(strings.ReplaceAll(s, `\`, `\\`))
}

// text quotes a text without backslashes.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
