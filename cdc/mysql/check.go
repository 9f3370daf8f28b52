package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// SelfCheck returns what keeps the feed from working, joined, each with what mends it: the server, its settings, the tables, the rights of the user,
// Redis. It changes nothing. nil: the feed can work.
func (f *Feed) SelfCheck(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	db, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // whatever it says, the connection is gone
	ready := f.ready(ctx, db)
	if db.PingContext(ctx) != nil {
		return ready
	}
	_, snapshot := f.snapshot(ctx, db)
	_, _, stored := f.stored(ctx)
	return errors.Join(ready, f.rights(ctx, db), snapshot, stored)
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
		add("log_bin is off (mend with: log_bin in the server's configuration, and a restart)")
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
	there, err := tablesOf(ctx, db)
	if err != nil {
		return err
	}
	for _, name := range f.engine.Tables.Names() {
		if kind, ok := there[name]; !ok {
			var names []string
			for other := range there {
				names = append(names, other)
			}
			add("there is no table %s, or the user may not see it%s", name, engine.Near(name, names))
		} else if kind != "BASE TABLE" {
			add("%s is no table", name)
		}
	}
	return errors.Join(problems...)
}

func tablesOf(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT table_schema, table_name, table_type FROM information_schema.tables")
	if err != nil {
		return nil, fmt.Errorf("cdc/mysql: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err says what matters
	there := make(map[string]string)
	for rows.Next() {
		var schema, name, kind string
		if err := rows.Scan(&schema, &name, &kind); err != nil {
			return nil, fmt.Errorf("cdc/mysql: %w", err)
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
			err = errors.Join(err, fmt.Errorf("cdc/mysql: user %s may not read the log (mend with: GRANT %s ON *.* TO '%s')", f.conn.User, right, f.conn.User))
		}
	}
	return errors.Join(err, rows.Err())
}
