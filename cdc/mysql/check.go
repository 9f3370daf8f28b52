package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// SelfCheck returns what keeps the feed from working, joined, each with what mends it: the server, its settings, the tables, the rights of the user, a connection as the
// one that reads the log, Redis. It changes nothing. nil: the feed can work.
func (f *Feed) SelfCheck(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	db := f.open()
	defer func() { _ = db.Close() }() // whatever it says, the connection is gone
	ready := f.ready(ctx, db)
	if db.PingContext(ctx) != nil {
		return ready
	}
	_, snapshot := f.snapshot(ctx, db)
	return errors.Join(ready, f.rights(ctx, db), snapshot, f.checkReader(ctx, db), f.checkRows(ctx, db), f.stranger(ctx))
}

// checkRows checks that the values are known that Changed asks for.
func (f *Feed) checkRows(ctx context.Context, db *sql.DB) error {
	var problems []error
	for _, table := range f.engine.Tables.All() {
		database, name, _ := strings.Cut(table.Name, ".")
		known, err := schemaOf(ctx, db, database, name)
		if err == nil && len(known) > 0 { // else ready says so
			err = try(ctx, db, table, known)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// ready returns why changes would be missed.
func (f *Feed) ready(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var version, format, image, metadata string
	var log bool
	if err := db.QueryRowContext(ctx, "SELECT version(), @@log_bin").Scan(&version, &log); err != nil {
		return fmt.Errorf("cdc/mysql: %w", err)
	}
	if !strings.Contains(version, "MariaDB") {
		return fmt.Errorf("cdc/mysql: the server is %s, and no MariaDB: use package cdc/outbox", version)
	}
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor) // it begins with them
	if number := 100*major + minor; number < 1006 || number > 1103 {
		return fmt.Errorf("cdc/mysql: MariaDB %s is not one from 10.6 to 11.3: use package cdc/outbox", version)
	}
	var problems []error
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("cdc/mysql: "+format, args...))
	}
	if !log {
		problems = append(problems, fmt.Errorf("%w: log_bin is off (mend with: log_bin in its configuration, and a restart)", errGaps))
	}
	err := db.QueryRowContext(ctx, "SELECT @@global.binlog_format, @@global.binlog_row_image, @@global.binlog_row_metadata").Scan(&format, &image, &metadata)
	if err != nil {
		return fmt.Errorf("cdc/mysql: %w", err)
	}
	for _, s := range [][3]string{{"binlog_format", format, "ROW"}, {"binlog_row_image", image, "FULL"}, {"binlog_row_metadata", metadata, "FULL"}} {
		if s[1] != s[2] {
			add("%s is %s (mend with: SET GLOBAL %s = '%s', and new connections)", s[0], s[1], s[0], s[2])
		}
	}
	problems = append(problems, f.checkFilters(ctx, db, log), f.checkTables(ctx, db))
	return errors.Join(problems...)
}

// errGaps says that the log leaves changes out, so that a position in it says nothing.
var errGaps = errors.New("cdc/mysql: the server does not log all changes")

// checkFilters returns why the server leaves statements or rows out of its log: filters leave out statements by the database of their session, whichever tables they are about.
func (f *Feed) checkFilters(ctx context.Context, db *sql.DB, log bool) error {
	var file, pos, only, but string
	var replicates, running int
	if log {
		if err := db.QueryRowContext(ctx, "SHOW MASTER STATUS").Scan(&file, &pos, &only, &but); err != nil {
			return fmt.Errorf("cdc/mysql: look for filters of the log: %w", err)
		}
	}
	err := db.QueryRowContext(ctx, "SELECT @@log_slave_updates, (SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'slaves_running')").Scan(&replicates, &running)
	switch {
	case err != nil:
		return fmt.Errorf("cdc/mysql: %w", err)
	case only+but != "":
		return fmt.Errorf("%w: binlog_do_db is %q, and binlog_ignore_db is %q (mend with: neither of them in its configuration, and a restart)", errGaps, only, but)
	case running > 0 && replicates == 0:
		return fmt.Errorf("%w: it is a replica with log_slave_updates off. Conn must lead to the primary", errGaps)
	}
	return nil
}

// checkTables returns which tables have no rows in the log.
func (f *Feed) checkTables(ctx context.Context, db *sql.DB) error {
	there, err := tablesOf(ctx, db)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range f.engine.Tables.Names() {
		if kind, ok := there[name]; !ok {
			problems = append(problems, fmt.Errorf("cdc/mysql: there is no table %s, or the user may not see it%s", name, engine.Near(name, slices.Collect(maps.Keys(there)))))
		} else if kind != "BASE TABLE" {
			problems = append(problems, fmt.Errorf("cdc/mysql: %s is no table, but a %s", name, strings.ToLower(kind)))
		}
	}
	return errors.Join(problems...)
}

// engines are those whose tables have their rows, and only they change them; others are a view of other tables, of files or of another server.
var (
	engines        = strings.Fields("innodb aria myisam memory archive csv rocksdb")
	refusedEngines = strings.Fields("mrg_myisam federated connect spider sequence blackhole performance_schema oqgraph sphinx s3 columnstore mroonga")
)

func tablesOf(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT table_schema, table_name, table_type, lower(coalesce(engine, '')) FROM information_schema.tables")
	if err != nil {
		return nil, fmt.Errorf("cdc/mysql: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err says what matters
	there := make(map[string]string)
	for rows.Next() {
		var schema, name, kind, of string
		if err := rows.Scan(&schema, &name, &kind, &of); err != nil {
			return nil, fmt.Errorf("cdc/mysql: %w", err)
		}
		if kind == "BASE TABLE" && !slices.Contains(engines, of) {
			kind = "table of engine " + of
		}
		if _, twice := there[schema+"."+name]; twice {
			kind = "name of two tables, as there are dots in the names of their databases"
		}
		there[schema+"."+name] = kind
	}
	return there, rows.Err()
}

// rights looks for the user's rights.
func (f *Feed) rights(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SHOW GRANTS")
	if err != nil {
		return fmt.Errorf("cdc/mysql: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err says what matters
	conn, err := f.conn(ctx)
	if err != nil {
		return err
	}
	var all strings.Builder
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			return fmt.Errorf("cdc/mysql: %w", err)
		}
		all.WriteString(grant)
	}
	for _, right := range []string{"REPLICATION SLAVE", "BINLOG MONITOR"} {
		if text := all.String(); !strings.Contains(text, right) && !strings.Contains(text, "ALL PRIVILEGES ON *.*") {
			err = errors.Join(err, fmt.Errorf("cdc/mysql: user %s may not read the log (mend with: GRANT %s ON *.* TO '%s')", conn.User, right, conn.User))
		}
	}
	return errors.Join(err, rows.Err())
}
