package mysql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

// roads are what other ways lead to a table: a view, functions, a procedure, and a trigger of another table.
func roads(table, change string) []string {
	return []string{
		"CREATE OR REPLACE VIEW road AS SELECT * FROM " + table,
		"CREATE OR REPLACE FUNCTION walk() RETURNS int DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE " + table + " SET " + change + "; RETURN 1; END",
		"CREATE OR REPLACE PROCEDURE ride() MODIFIES SQL DATA UPDATE " + table + " SET " + change,
		"CREATE TABLE IF NOT EXISTS gate (n int)", "CREATE OR REPLACE TRIGGER gate_in BEFORE INSERT ON gate FOR EACH ROW UPDATE " + table + " SET " + change,
	}
}

// walks are statements that take one of the roads, and name the table nowhere. $ is the change.
var walks = []string{
	"UPDATE road SET $", "DO walk()", "SET @a = walk()", "SELECT walk()", "CALL ride()", "INSERT INTO gate VALUES (1)", "REPLACE INTO gate VALUES (1)", "INSERT INTO gate SELECT walk()",
	"CREATE TEMPORARY TABLE walked SELECT walk() AS n", "CREATE OR REPLACE TABLE walked AS SELECT walk() AS n", "CREATE OR REPLACE TABLE walked (n int) WITH w AS (SELECT walk() AS n) SELECT * FROM w",
	"CREATE OR REPLACE TABLE walked (n int) VALUES (walk())", "ANALYZE UPDATE road SET $", "ANALYZE FORMAT=JSON UPDATE road SET $", "ANALYZE SELECT walk()", "DELETE FROM gate WHERE walk() = 1",
	"EXECUTE IMMEDIATE 'DO walk()'", "WITH w AS (SELECT walk() AS n) SELECT * FROM w", "VALUES (walk())", "UPDATE gate, road SET road.$", "BEGIN NOT ATOMIC DECLARE n int DEFAULT walk(); END",
	"IF walk() = 1 THEN DO 1; END IF", "SHOW TABLES WHERE walk() = 1",
	"LOAD DATA INFILE '/dev/null' INTO TABLE gate", "SET PASSWORD = PASSWORD('')", "DELETE FROM road", "INSERT INTO gate VALUES (1) RETURNING walk()",
}

// ways are what may stand before a statement, or around it: %s.
var ways = []string{"%s", "SET STATEMENT max_statement_time = 60 FOR %s", "/* SET */ %s", "/*!100100 SET STATEMENT max_statement_time = 60 FOR */ %s", "-- ALTER TABLE\n%s", "  \n%s", "/*!%s*/", "/**/%s"}

// TestWhateverAStatementBeginsWithItsChangesAreRead has sessions that log statements, of which none names the table.
func TestWhateverAStatementBeginsWithItsChangesAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	w.exec("INSERT INTO products VALUES (1, 'a', 'n')")
	w.exec(roads("products", "name = concat(name, '+')")...)
	f, _ := w.run(w.config())
	r := rand.New(rand.NewPCG(uint64(feedtest.Rounds(1)), 9))
	changed := 0
	for n, walk := range append(walks, walks...) {
		way, format := ways[r.IntN(len(ways))], []string{"STATEMENT", "MIXED"}[n%2]
		w.exec("UPDATE products SET name = 'n'", "DELETE FROM gate")
		w.CatchUp(f)
		w.Reads(1, "n")
		statement := fmt.Sprintf(way, strings.ReplaceAll(walk, "$", "name = 'n+'"))
		session, err := w.db.Conn(t.Context())
		expect.ErrorIs(t, err)
		for _, s := range []string{"SET SESSION binlog_format = '" + format + "'", statement, "SET SESSION binlog_format = DEFAULT"} {
			_, _ = session.ExecContext(t.Context(), s) // the server may refuse some
		}
		expect.ErrorIs(t, session.Close())
		w.CatchUp(f)
		var want string
		_ = w.db.QueryRowContext(t.Context(), "SELECT name FROM products WHERE id = 1").Scan(&want) // it may be gone
		if want != "n" {
			changed++
		}
		w.Reads(1, want)
		if t.Failed() {
			t.Fatal(format, ": ", statement)
		}
		if want == "" {
			w.exec("INSERT INTO products VALUES (1, 'a', 'n')")
		}
	}
	if changed < len(walks) {
		t.Errorf("%d of %d statements have changed something", changed, 2*len(walks))
	}
}

// TestAStatementThatOnlyDefinesInvalidatesWhatItNames has statements of other tables, after which entries stay.
func TestAStatementThatOnlyDefinesInvalidatesWhatItNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("CREATE TABLE other (id int PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10))", "CREATE TABLE plain (id int)")
	w.CatchUp(f)
	w.Reads(1, "one")
	for _, statement := range []string{
		"CREATE TABLE next (id int)", "ALTER TABLE other ADD COLUMN n int", "CREATE INDEX i ON other (n)", "DROP INDEX i ON other", "TRUNCATE other", "RENAME TABLE next TO after", "DROP TABLE after",
		"CREATE DEFINER=root@localhost VIEW v AS SELECT 1", "CREATE OR REPLACE PROCEDURE p() SELECT 1", "CREATE USER somebody", "GRANT SELECT ON other TO somebody", "DROP USER somebody",
		"ANALYZE TABLE other", "OPTIMIZE LOCAL TABLE other", "REPAIR TABLE other", "FLUSH TABLES", "CREATE SEQUENCE s", "DROP VIEW v",
		"SET SESSION binlog_format = 'MIXED'; CREATE TEMPORARY TABLE tmp (id int); DROP TEMPORARY TABLE tmp", "INSERT INTO plain VALUES (1)",
	} {
		w.exec(strings.Split(statement, "; ")...)
		w.exec("SET SESSION binlog_format = DEFAULT")
		w.CatchUp(f)
		w.Keeps(1, "one")
		if t.Failed() {
			t.Fatal(statement)
		}
	}
}

// TestAnEventThatSaysNothingOfWhatWasWrittenInvalidatesTheKindsWhole has an incident, after which the log has a gap, and events of later servers.
func TestAnEventThatSaysNothingOfWhatWasWrittenInvalidatesTheKindsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, err := New(w.config())
	expect.ErrorIs(t, err)
	for kind, want := range map[replication.EventType]int{replication.INCIDENT_EVENT: 1, replication.EXECUTE_LOAD_QUERY_EVENT: 1, 200: 1, replication.MARIADB_ANNOTATE_ROWS_EVENT: 0, replication.STOP_EVENT: 0} {
		whole := 0
		d := decoder{engine: f.engine, put: func(_ context.Context, p *engine.Part[place]) error { whole += len(p.Whole); return nil }}
		header := &replication.EventHeader{EventType: kind, Timestamp: uint32(time.Now().Unix())}
		expect.ErrorIs(t, d.event(t.Context(), &replication.BinlogEvent{Header: header, Event: &replication.GenericEvent{}}))
		expect.Equal(t, "whole tables after "+kind.String(), whole, want)
	}
}
