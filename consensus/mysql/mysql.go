package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/cacheguard/go/consensus"
	"github.com/cacheguard/go/consensus/internal/database"
	"github.com/cacheguard/go/consensus/internal/store"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

type (
	// Config says how a Locker behaves.
	Config = consensus.Config

	// Locker hands out locks.
	Locker = consensus.Locker

	// Lease is a lock that is held.
	Lease = consensus.Lease

	// Hooks are called as things happen.
	Hooks = consensus.Hooks
)

// The errors of package mutex.
var (
	ErrNotAcquired = consensus.ErrNotAcquired
	ErrLeaseLost   = consensus.ErrLeaseLost
	ErrClosed      = consensus.ErrClosed
)

// New returns a Locker on a MySQL or MariaDB that was opened with the driver github.com/go-sql-driver/mysql. It does no I/O and
// starts no goroutine. The table must be there, see CreateTable. Each lock that is held, and each name that calls of this
// process wait for, takes a connection of the pool, and giving up a wait takes one more for a moment. So give the locks a
// pool of their own: holders that need a connection for their work would wait for those who wait for them. The error names every
// field of cfg that is out of range.
func New(db *sql.DB, cfg Config) (*Locker, error) {
	return store.New[*Locker](db, cfg, func(cfg Config, life *lifecycle.Life) store.Store {
		return database.New(&driver{db: db, ttl: cfg.TTL, timeout: cfg.Timeout}, life, cfg.TTL, cfg.Timeout)
	})
}

// CreateTable creates the table cacheguard_locks in the current database, unless it is there: a row for each name that was
// ever locked. Rows may be deleted while nothing uses the table; the fences of their names go on from the database's clock.
func CreateTable(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, createTable); err != nil {
		return fmt.Errorf("mysql: create the table of locks: %w", err)
	}
	return nil
}

const createTable = `CREATE TABLE IF NOT EXISTS cacheguard_locks (
	id       BINARY(32) NOT NULL PRIMARY KEY COMMENT 'SHA-256 of the name',
	name     BLOB       NOT NULL,
	fence    BIGINT     NOT NULL,
	lease_ms BIGINT     NOT NULL DEFAULT 0,
	free_at  BIGINT     NOT NULL DEFAULT 0
) ENGINE=InnoDB`
