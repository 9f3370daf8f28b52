package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5/pgxpool"

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

// New returns a Locker. It does no I/O and starts no goroutine. The table must be there, see CreateTable. Each lock that is held, and each
// name that calls of this process wait for, takes a connection of the pool, so give the locks a pool of their own: holders
// that need a connection for their work would wait for those who wait for them. The error names every field of cfg that is out
// of range.
func New(pool *pgxpool.Pool, cfg Config) (*Locker, error) {
	return store.New[*Locker](pool, cfg, func(cfg Config, life *lifecycle.Life) store.Store {
		return database.New(&driver{pool: pool, ttl: cfg.TTL, timeout: cfg.Timeout}, life, cfg.TTL, cfg.Timeout)
	})
}

// CreateTable creates the table cacheguard_locks in the first schema of the search path, unless it is there: a row for each
// name that was ever locked. Rows may be deleted while nothing uses the table; the fences of their names go on from the
// database's clock.
func CreateTable(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, createTable); err != nil {
		return fmt.Errorf("postgres: create the table of locks: %w", err)
	}
	return nil
}

// SelfCheck checks whether locks work on the pool: the table is there, its user may change it, and connections keep their sessions. A pooler
// between, such as PgBouncer in transaction mode, may not keep them; then locks are refused, or lost again. Call it when a service starts. It takes
// two connections, and ends with ctx. The error says what is wrong.
func SelfCheck(ctx context.Context, pool *pgxpool.Pool) error {
	if err := selfCheck(ctx, pool); err != nil {
		return fmt.Errorf("postgres: self-check: %w", err)
	}
	return nil
}

func selfCheck(ctx context.Context, pool *pgxpool.Pool) error {
	if pool.Config().MaxConns < 2 {
		return errors.New("the pool has one connection")
	}
	one, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer one.Release()
	if _, err := one.Exec(ctx, `UPDATE cacheguard_locks SET lease_ms = 0 WHERE false`); err != nil {
		return err
	}
	if _, err := one.Exec(ctx, `INSERT INTO cacheguard_locks (name) SELECT '' WHERE false`); err != nil {
		return err
	}
	key := rand.Int32()
	if _, err := one.Exec(ctx, `SELECT pg_advisory_lock(0, $1)`, key); err != nil {
		return err
	}
	other, err := pool.Begin(ctx) // a pooler gives it a session for as long as it lasts: if it is one's, that gets another one
	if err != nil {
		return err
	}
	defer func() { _ = other.Rollback(ctx) }() // it has changed nothing
	var shared, kept bool
	const free = `SELECT pg_advisory_unlock(0, $1)`
	err = other.QueryRow(ctx, `SELECT `+hasLock("0", "$1"), key).Scan(&shared)
	if err == nil {
		err = one.QueryRow(ctx, `SELECT `+hasLock("0", "$1"), key).Scan(&kept)
	}
	if err == nil && shared {
		_, err = other.Exec(ctx, free, key)
	} else if err == nil && kept {
		_, err = one.Exec(ctx, free, key)
	}
	if err == nil && (shared || !kept) {
		err = errNoSession
	}
	return err
}

// createTable lets one process at a time create the table: IF NOT EXISTS alone can fail when two do so at once.
const createTable = `DO $$ BEGIN
	PERFORM pg_advisory_xact_lock(hashtext('cacheguard_locks'));
	CREATE TABLE IF NOT EXISTS cacheguard_locks (
		id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		name     text    NOT NULL UNIQUE,
		fence    bigint  NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
		lease_ms bigint  NOT NULL DEFAULT 0,
		free_at  bigint  NOT NULL DEFAULT 0
	);
END $$`
