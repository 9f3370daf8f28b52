package backends

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // in Go, so that no C compiler is needed
)

// openSQLite makes a new database in a temporary folder, which cleanUp removes.
func openSQLite() (db *sql.DB, cleanUp func() error, err error) {
	folder, err := os.MkdirTemp("", "cacheguard-example-")
	if err != nil {
		return nil, nil, err
	}
	cleanUp = func() error { return os.RemoveAll(folder) }

	file := filepath.ToSlash(filepath.Join(folder, "products.db"))
	db, err = sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, nil, errors.Join(err, cleanUp())
	}
	return db, cleanUp, nil
}
