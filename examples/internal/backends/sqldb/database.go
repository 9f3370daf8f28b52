// Package sqldb opens the database of those examples that are about SQL: an embedded SQLite, unless DATABASE_URL names a real
// PostgreSQL. It is apart from the Redis because the two drivers take longer to compile than go-redis.
package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // in Go, so that no C compiler is needed

	"github.com/cacheguard/go/examples/internal/backends"
)

// Connections is how many queries the database runs at a time. Further ones queue for a connection, as with any database:
// eight services with five connections each would come to the same.
const Connections = 40

// DB is the database of an example: the one that DATABASE_URL names, or an embedded one. Its tables are the example's own.
type DB struct {
	*sql.DB
	// Writer runs the statements that write. SQLite lets one in at a time: this is a queue for them. SQLite itself would
	// let them sleep and try again. With PostgreSQL it is the same as DB.
	Writer *sql.DB

	name    string
	prefix  string // of the tables
	tables  []string
	cleanUp func() error
}

// Open opens the database and makes sure that it answers.
func Open(ctx context.Context) (*DB, error) {
	d := &DB{prefix: "cacheguard_example_" + strings.ToLower(rand.Text()[:10])}
	if err := d.open(); err != nil {
		return nil, err
	}
	d.SetMaxOpenConns(Connections)
	d.SetMaxIdleConns(Connections)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := d.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.name, err), d.Close())
	}
	return d, nil
}

func (d *DB) open() (err error) {
	if raw := os.Getenv("DATABASE_URL"); raw != "" {
		d.name, d.cleanUp = "PostgreSQL of DATABASE_URL", func() error { return nil }
		d.DB, err = openPostgres(raw)
		d.Writer = d.DB
		return err
	}
	d.name = "embedded SQLite"
	d.DB, d.Writer, d.cleanUp, err = openSQLite()
	return err
}

// Create makes a table, and fills it with what the statement `SELECT … FROM n` says, where n is a table with a column i
// of the numbers from 1 to rows. It returns the table's name. Both databases understand these statements.
func (d *DB) Create(ctx context.Context, name, columns, each string, rows int) (table string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	table = d.prefix + "_" + name
	if _, err := d.Writer.ExecContext(ctx, `CREATE TABLE `+table+` (`+columns+`)`); err != nil {
		return "", fmt.Errorf("%s: create table %s: %w", d.name, table, err)
	}
	d.tables = append(d.tables, table)
	if rows == 0 {
		return table, nil
	}
	insert := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		INSERT INTO ` + table + ` SELECT ` + each + ` FROM n`
	if _, err := d.Writer.ExecContext(ctx, insert, rows); err != nil {
		return "", fmt.Errorf("%s: fill table %s: %w", d.name, table, err)
	}
	return table, nil
}

// String names the database.
func (d *DB) String() string { return d.name }

// Drop drops the tables, and nothing else.
func (d *DB) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var errs []error
	for _, table := range d.tables {
		if _, err := d.Writer.ExecContext(ctx, `DROP TABLE `+table); err != nil {
			errs = append(errs, fmt.Errorf("drop table %s: %w", table, err))
		}
	}
	d.tables = nil
	return errors.Join(errs...)
}

// Close drops the tables that are left.
func (d *DB) Close() error {
	errs := []error{d.Drop(context.Background())}
	if d.Writer != d.DB {
		errs = append(errs, d.Writer.Close())
	}
	return errors.Join(append(errs, d.DB.Close(), d.cleanUp())...)
}

// openPostgres does not connect yet.
func openPostgres(raw string) (*sql.DB, error) {
	if !strings.HasPrefix(raw, "postgres://") && !strings.HasPrefix(raw, "postgresql://") {
		return nil, errors.New("DATABASE_URL is no address of a PostgreSQL: it must begin with postgres://")
	}
	config, err := pgx.ParseConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL is no address of a PostgreSQL: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	return stdlib.OpenDB(*config), nil
}

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

// With opens the Redis and the database of an example, runs it, and closes both.
func With(ctx context.Context, run func(*backends.RedisServer, *DB) error) (err error) {
	server, err := backends.Redis(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	db, err := Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return run(server, db)
}
