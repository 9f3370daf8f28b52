package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cacheguard/go/consensus/internal/database"
	"github.com/cacheguard/go/consensus/internal/store"
)

// queryInterrupted is the database's code for a statement that was killed.
const queryInterrupted = 1317

// driver opens sessions on connections of a pool.
type driver struct {
	db      *sql.DB
	ttl     time.Duration
	timeout time.Duration
}

func (d *driver) Open(ctx context.Context) (database.Session, error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{driver: d, conn: conn}, nil
}

// session is a connection.
type session struct {
	*driver

	conn       *sql.Conn
	connection int64
	name       string
	id         [sha256.Size]byte // of the row
	lock       string            // what GET_LOCK knows the name as
}

// names of GET_LOCK have 64 characters at most, are the server's and not the database's, and do not know capitals.
const lockName = `SELECT CONCAT('cg-', LEFT(SHA2(CONCAT(COALESCE(DATABASE(), ''), '/', ?), 256), 60)), CONNECTION_ID()`

// forever is how long a statement waits, in seconds: its context ends it. Some versions know no endless wait.
const forever = 365 * 24 * 60 * 60

// Queue asks for the named lock. A session that says nothing for TTL, as its process has vanished, is closed by the database; so that is
// said before the lock can be there.
func (s *session) Queue(giveUp context.Context, name string, waits bool) (taken bool, err error) {
	err = store.Bounded(context.WithoutCancel(giveUp), s.timeout, func(ctx context.Context) error {
		if err := s.identify(ctx, s.conn, name); err != nil {
			return err
		}
		err := s.expect(ctx)
		if err != nil || waits {
			return err
		}
		if taken, err = s.ask(ctx, 0); err == nil && !taken {
			err = s.forget(ctx)
		}
		return err
	})
	if err != nil || !waits {
		return taken, err
	}
	taken, err = s.wait(giveUp)
	if err != nil && errors.Is(err, giveUp.Err()) {
		err = s.undo(giveUp)
	}
	return taken, err
}

// identify finds out what the database calls the name and the connection.
func (s *session) identify(ctx context.Context, conn interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, name string) error {
	s.name, s.id = name, sha256.Sum256([]byte(name))
	return conn.QueryRowContext(ctx, lockName, hex.EncodeToString(s.id[:])).Scan(&s.lock, &s.connection)
}

// undo makes the connection what it was before a wait that was given up. The statement may have got the lock just before
// it was killed.
func (s *session) undo(giveUp context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(giveUp), s.timeout)
	defer cancel()
	if err := s.Leave(ctx, false); err != nil {
		return fmt.Errorf("free what was granted too late: %s", err) //nolint:errorlint // it may be that of another context
	}
	return giveUp.Err()
}

// expect makes the database close the connection if it hears nothing for TTL, and note its clock, which may be set between two statements.
// forget undoes the first.
func (s *session) expect(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, `SET SESSION autocommit = 1, SESSION wait_timeout = ?, @cacheguard_now = `+now, max(1, int64((s.ttl+time.Second-1)/time.Second)))
	return err
}

func (s *session) forget(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, `SET SESSION wait_timeout = DEFAULT`)
	return err
}

func (s *session) ask(ctx context.Context, seconds int64) (taken bool, err error) {
	var answer sql.NullBool
	err = s.conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, ?)`, s.lock, seconds).Scan(&answer)
	if err == nil && !answer.Valid {
		err = errInterrupted
	}
	return answer.Bool, err
}

var errInterrupted = errors.New("the wait was interrupted")

// wait does not use giveUp for the statement: the driver would close the connection. It kills the statement.
func (s *session) wait(giveUp context.Context) (taken bool, err error) {
	ctx, cut := context.WithCancel(context.WithoutCancel(giveUp))
	defer cut()
	killed := make(chan error, 1)
	stop := context.AfterFunc(giveUp, func() { // owner: this call; stop: timeout; joined below
		killed <- s.kill(ctx, cut)
	})
	taken, err = s.ask(ctx, forever)
	if stop() {
		return taken, err
	}
	failed := <-killed
	// A request to kill that was given up may arrive later and hit the next statement, and so may one that met an answer, so the
	// connection is not used again.
	var code *mysql.MySQLError
	if failed == nil && (errors.As(err, &code) && code.Number == queryInterrupted || errors.Is(err, errInterrupted)) {
		return false, giveUp.Err()
	}
	return false, fmt.Errorf("the wait was killed: %v, %v", failed, err) //nolint:errorlint // they may be those of other contexts
}

// kill kills the statement, and cuts the connection if that does not end it in time. It returns nil when the server has done so.
func (s *session) kill(ctx context.Context, cut context.CancelFunc) error {
	time.AfterFunc(s.timeout, cut) // nothing is left to cut when the statement has ended
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer stop()
	_, err := s.db.ExecContext(ctx, fmt.Sprintf("KILL QUERY %d", s.connection))
	return err
}

// now is the database's clock in milliseconds, in no time zone.
const now = `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)`

const (
	// claim is one statement, whose assignments are made from left to right: lease_ms last, as the others look at it. A
	// lock that is not free keeps its fence, and free_at says until when. A wait that would be longer than the lease says that the clock
	// was set back.
	claim = `UPDATE cacheguard_locks SET
			fence    = fence + (? OR lease_ms = 0 OR free_at > 0 AND free_at <= @cacheguard_now),
			free_at  = IF(? OR lease_ms = 0 OR free_at > 0 AND free_at <= @cacheguard_now, 0,
				IF(free_at = 0, @cacheguard_now + lease_ms, LEAST(free_at, @cacheguard_now + lease_ms))),
			lease_ms = IF(free_at = 0, ?, lease_ms)
		WHERE id = ?`
	look    = `SELECT fence, IF(free_at = 0, 0, GREATEST(1, free_at - @cacheguard_now)) FROM cacheguard_locks WHERE id = ?`
	addName = `INSERT IGNORE INTO cacheguard_locks (id, name, fence) VALUES (?, ?, ` + now + ` * 1000)`
)

// Claim changes the row alone, and looks at it then: nobody else does so without the named lock.
func (s *session) Claim(ctx context.Context, waited bool) (fence int64, left time.Duration, err error) {
	if err := s.expect(ctx); err != nil {
		return 0, 0, err
	}
	for range 2 {
		if _, err = s.conn.ExecContext(ctx, claim, waited, waited, s.ttl.Milliseconds(), s.id[:]); err != nil {
			return 0, 0, err
		}
		var ms int64
		err = s.conn.QueryRowContext(ctx, look, s.id[:]).Scan(&fence, &ms)
		if !errors.Is(err, sql.ErrNoRows) {
			return fence, time.Duration(ms) * time.Millisecond, err
		}
		if _, err = s.conn.ExecContext(ctx, addName, s.id[:], []byte(s.name)); err != nil {
			return 0, 0, err
		}
	}
	return 0, 0, fmt.Errorf("the row of %q was deleted", s.name)
}

// Idle hears nothing: the driver does not read from a connection that waits for nothing.
func (s *session) Idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ping makes sure that the session still has the named lock.
func (s *session) Ping(ctx context.Context) error {
	var mine sql.NullBool
	err := s.conn.QueryRowContext(ctx, `SELECT IS_USED_LOCK(?) = CONNECTION_ID()`, s.lock).Scan(&mine)
	if err == nil && !mine.Bool {
		err = errors.New("the session has lost its lock")
	}
	return err
}

// Leave commits that the lock is given up before the next in the queue can see the row.
func (s *session) Leave(ctx context.Context, holder bool) error {
	if holder {
		if _, err := s.conn.ExecContext(ctx, `UPDATE cacheguard_locks SET lease_ms = 0, free_at = 0 WHERE id = ?`, s.id[:]); err != nil {
			return err
		}
	}
	if _, err := s.conn.ExecContext(ctx, `DO RELEASE_LOCK(?)`, s.lock); err != nil {
		return err
	}
	return s.forget(ctx)
}

func (s *session) Return() { _ = s.conn.Close() } // back to the pool

func (s *session) Discard() {
	_ = s.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // what makes the pool close it
	_ = s.conn.Close()                                              // the same
}
