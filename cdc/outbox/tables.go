package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// What triggers do not see of a table is looked for here: on MySQL and MariaDB, tables that take its place (EXCHANGE PARTITION, TRUNCATE), and engines whose tables change
// otherwise.

// engines lists the ones of MySQL and MariaDB whose rows only statements about their own table change.
var engines = strings.Fields("innodb aria myisam archive csv rocksdb")

// files asks for the number of the file that a table has by now, or each of its partitions. The server writes other characters of names than letters and digits in a charset of its own.
const files = "SELECT CONVERT(CONVERT(CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(name, '/', -1), '#', 1) AS BINARY) USING filename) USING utf8mb4) AS t, name, table_id FROM information_schema.%s " +
	"WHERE CONVERT(CONVERT(CAST(SUBSTRING_INDEX(name, '/', 1) AS BINARY) USING filename) USING utf8mb4) = DATABASE() ORDER BY name, table_id"

// takeFiles notes what a table has in place of rows that triggers see.
func (f *Feed) takeFiles(ctx context.Context, all map[string]*noted) error {
	rows, err := f.texts(ctx, "SELECT table_name, lower(coalesce(engine, '')), version() LIKE '%MariaDB%' FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ("+f.names()+")")
	if err != nil {
		return fmt.Errorf("cdc/outbox: look for engines: %w", err)
	}
	merged, view := false, "innodb_tables"
	for _, row := range rows {
		n := all[row[0]]
		if n == nil {
			continue
		}
		if merged = merged || row[1] == "myisam"; !slices.Contains(engines, row[1]) {
			n.unseen = "it is of engine " + row[1]
		}
		if n.form(row[1]); row[2] == "1" {
			view = "innodb_sys_tables"
		}
		n.inFiles = row[1] == "innodb"
	}
	if merged {
		if err := f.takeMerged(ctx, all); err != nil {
			return err
		}
	}
	rows, err = f.texts(ctx, fmt.Sprintf(files, view))
	if err != nil && strings.Contains(err.Error(), "1227") { // the user has no right to that, in the words of any driver
		rows, err = nil, nil
		for _, n := range all {
			n.inFiles = false
		}
	}
	if err != nil {
		return fmt.Errorf("cdc/outbox: look for the files of tables: %w", err)
	}
	for _, row := range rows {
		if n := all[row[0]]; n != nil {
			n.form(row[1], row[2])
		}
	}
	return nil
}

// takeMerged notes MERGE tables, which are views of the rows of others: triggers of those do not fire.
func (f *Feed) takeMerged(ctx context.Context, all map[string]*noted) error {
	rows, err := f.texts(ctx, "SELECT table_schema, table_name FROM information_schema.tables WHERE engine = 'MRG_MyISAM'")
	if err != nil {
		return fmt.Errorf("cdc/outbox: look for MERGE tables: %w", err)
	}
	for _, row := range rows {
		name := MySQL.quote1(row[0]) + "." + MySQL.quote1(row[1])
		made, err := f.texts(ctx, "SHOW CREATE TABLE "+name)
		for table, n := range all {
			if err != nil || strings.Contains(made[0][1], MySQL.quote1(table)) {
				n.unseen = "a MERGE table writes its rows: " + name
			}
		}
	}
	return nil
}

// blind says that a partition may take a table's place, and nobody would see that.
func (f *Feed) blind(ctx context.Context, all map[string]*noted) error {
	var tables []string
	for name, n := range all {
		if !n.inFiles {
			tables = append(tables, name)
		}
	}
	if f.cfg.Dialect != MySQL || len(tables) == 0 {
		return nil
	}
	rows, err := f.texts(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND create_options LIKE '%partitioned%' ORDER BY 1 LIMIT 1")
	if err != nil || len(rows) == 0 {
		return err
	}
	slices.Sort(tables)
	return fmt.Errorf("cdc/outbox: nobody would see that ALTER TABLE … EXCHANGE PARTITION gives other rows to %s, as there are tables with partitions, such as %s "+
		"(mend with: GRANT PROCESS ON *.* to the user, and engine InnoDB)", strings.Join(tables, ", "), rows[0][0])
}
