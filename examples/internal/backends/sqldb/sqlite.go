package sqldb

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // in Go, so that no C compiler is needed
)

// openSQLite makes a new database in a temporary folder, which cleanUp removes. It does not wait for the disk after
// each write: the database does not outlive the example, and the comparisons are not about disks.
func openSQLite() (db, writer *sql.DB, cleanUp func() error, err error) {
	folder, err := os.MkdirTemp("", "cacheguard-example-")
	if err != nil {
		return nil, nil, nil, err
	}
	cleanUp = func() error { return os.RemoveAll(folder) }

	file := filepath.ToSlash(filepath.Join(folder, "example.db"))
	name := "file:" + file + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	if db, err = sql.Open("sqlite", name); err != nil {
		return nil, nil, nil, errors.Join(err, cleanUp())
	}
	if writer, err = sql.Open("sqlite", name); err != nil {
		return nil, nil, nil, errors.Join(err, db.Close(), cleanUp())
	}
	writer.SetMaxOpenConns(1)
	return db, writer, cleanUp, nil
}
