package mysql

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/internal/testing/feedtest"
)

var drawnNames = []string{"plain", "Upper", "a b", `qu"ote`, "it's", "dot.ted", "grüße", "select", "1st", "x%s", "back`tick", strings.Repeat("long", 14)}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// drawTable draws a table, and statements that change it.
func (w *world) drawTable(r *rand.Rand, n int) feedtest.Drawn {
	types := slices.Sorted(maps.Keys(columnsOfAllTypes))
	kind := columnsOfAllTypes[types[n%len(types)]]
	name := fmt.Sprintf("%.55s%d", drawnNames[r.IntN(len(drawnNames))], n)
	table := quoted(name)
	d := feedtest.Drawn{Name: w.name + "." + name, SQL: table, Values: kind.values, Text: "k", Go: shown, Single: strings.Contains(kind.is, "date") || strings.Contains(kind.is, "bin") || kind.is == "blob"}
	if kind.is == "date" || kind.is == "datetime(3)" {
		d.Text = "DATE_FORMAT(k, '%Y-%m-%d %H:%i:%s')"
	}
	charset := []string{"utf8mb4", "latin1", "utf8mb3"}[r.IntN(3)]
	engine := []string{"InnoDB", "InnoDB", "MyISAM", "Aria"}[r.IntN(4)]
	create := "CREATE TABLE " + table + " (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, n int NOT NULL, old text, k " + kind.is +
		", twice int AS (n * 2) " + []string{"VIRTUAL", "PERSISTENT"}[r.IntN(2)] + ") ENGINE=" + engine + " CHARSET=" + charset
	alter := "ALTER TABLE " + table
	d.Change = []string{
		alter + " ADD COLUMN more int DEFAULT 3 FIRST", alter + " DROP COLUMN old", alter + " MODIFY k " + kind.is + " FIRST", alter + " CHANGE n m int; " + alter + " CHANGE m n int",
		"RENAME TABLE " + table + " TO away; UPDATE away SET n = n + 1; RENAME TABLE away TO " + table, "TRUNCATE " + table, alter + " ADD COLUMN packed text COMPRESSED",
		"SET SESSION binlog_row_image = 'MINIMAL'; UPDATE " + table + " SET n = n + 2", "SET SESSION binlog_format = 'STATEMENT'; UPDATE " + table + " SET n = n + 2",
		"REPLACE INTO " + table + " (id, n, k) VALUES (1, 1, " + kind.values[0] + ")", "BEGIN; UPDATE " + table + " SET n = n + 2; SAVEPOINT s; DELETE FROM " + table + "; ROLLBACK TO s; COMMIT",
	}
	if r.IntN(3) == 0 && kind.is != "point" { // which the server refuses
		create += " PARTITION BY HASH (id) PARTITIONS 3"
		d.Change = append(d.Change, alter+" TRUNCATE PARTITION p1", alter+" COALESCE PARTITION 1", alter+" REBUILD PARTITION p0")
	}
	road := fmt.Sprintf("road%d", n)
	d.Make = []string{create, "CREATE VIEW " + road + " AS SELECT id, n, k FROM " + table}
	for range 3 { // a statement that names another table
		verb := []string{"UPDATE %[1]s SET n = n + 2, k = %[2]s", "INSERT INTO %[1]s (n, k) VALUES (2, %[2]s)", "REPLACE INTO %[1]s (id, n, k) VALUES (2, 2, %[2]s)", "ANALYZE UPDATE %[1]s SET n = n + 2, k = %[2]s"}[r.IntN(4)]
		way, format := ways[r.IntN(len(ways))], []string{"STATEMENT", "MIXED"}[r.IntN(2)]
		d.Change = append(d.Change, "SET SESSION binlog_format = '"+format+"'; "+fmt.Sprintf(way, fmt.Sprintf(verb, road, kind.values[0])))
	}
	return d
}

func shown(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case time.Time:
		return v.Format(time.DateTime)
	}
	return fmt.Sprint(v)
}

// TestTheKeyOfEachRowIsWhatAQueryReturnsWhateverTheSchema draws some schemas; SOAK=100 a hundred.
func TestTheKeyOfEachRowIsWhatAQueryReturnsWhateverTheSchema(t *testing.T) {
	t.Parallel()
	drawn(t, nil, feedtest.Rounds(8)) // each type once
}

func TestAMistakeInTheKeyOfARowIsFound(t *testing.T) {
	t.Parallel()
	drawn(t, strings.ToUpper, 2)
}

func drawn(t *testing.T, mistake func(string) string, rounds int) {
	w := newWorld(t, startServer(t).Socket)
	s := &feedtest.Schemas{Shop: w.Shop, Mistake: mistake, Draw: w.drawTable}
	s.Exec = func(sql string) error {
		conn, err := w.db.Conn(t.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		for _, statement := range strings.Split(sql, "; ") {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				return err
			}
		}
		_, err = conn.ExecContext(t.Context(), "SET SESSION binlog_row_image = DEFAULT, binlog_format = DEFAULT")
		return err
	}
	s.Keys = func(query string) (all []string, err error) {
		rows, err := w.db.QueryContext(t.Context(), query)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return nil, err
			}
			all = append(all, key)
		}
		return all, rows.Err()
	}
	s.Open = func(tables []cdc.Table) (feedtest.Feed, error) { return New(w.config(tables...)) }
	s.Run(rounds)
}
