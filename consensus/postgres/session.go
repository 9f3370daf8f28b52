package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cacheguard/go/consensus/internal/database"
	"github.com/cacheguard/go/consensus/internal/store"
)

// queryCanceled is PostgreSQL's code for a statement that was cancelled.
const queryCanceled = "57014"

// driver opens sessions on connections of a pool.
type driver struct {
	pool    *pgxpool.Pool
	ttl     time.Duration
	timeout time.Duration
}

func (d *driver) Open(ctx context.Context) (database.Session, error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &session{driver: d, conn: conn}, nil
}

// session is a connection. The session's lock is the advisory lock of the table's oid and the id of the name's row, so names do not
// collide.
type session struct {
	*driver

	conn  *pgxpool.Conn
	class int32 // the table's oid
	id    int32 // of the row
	fence int64 // that it was claimed with
}

// hasLock is whether this session has the advisory lock of a class and an id. The connection alone does not say so: a pooler may have put
// another session behind it.
func hasLock(class, id string) string {
	return `EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()
		AND classid::int = ` + class + ` AND objid::int = ` + id + ` AND objsubid = 2)`
}

var errNoSession = errors.New("the session is not this connection's own: a pooler between must keep sessions, as PgBouncer does in session mode")

// patience lifts the time-outs of statements for one transaction: a wait ends with its context.
const patience = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)`

// The settings let the database notice a process that has vanished: waiting, by looking at the connection; holding, as it
// says nothing for TTL. They hold for the session until Leave, where the server has them (PostgreSQL 14; the check of
// connections on Linux). A transaction that is cancelled takes them back.
const settings = `SELECT
	CASE WHEN current_setting('server_version_num')::int >= 140000
		THEN set_config('idle_session_timeout', $1, false) END,
	CASE WHEN current_setting('server_version_num')::int >= 140000 AND version() LIKE '%linux%'
		THEN set_config('client_connection_check_interval', $1, false) END`

const reset = `RESET idle_session_timeout; RESET client_connection_check_interval`

// A session that has the advisory lock already gets it once more: then it is another's.
var (
	wait = asks(`pg_advisory_lock(tableoid::int, id) IS NOT NULL`)
	try  = asks(`pg_try_advisory_lock(tableoid::int, id)`)
)

func asks(how string) string {
	return `SELECT tableoid::int, id, CASE WHEN ` + hasLock("tableoid::int", "id") + ` THEN NULL ELSE ` + how + ` END FROM cacheguard_locks WHERE name = $1`
}

const (
	free    = `SELECT pg_advisory_unlock(tableoid::int, id) FROM cacheguard_locks WHERE name = $1`
	addName = `INSERT INTO cacheguard_locks (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`
)

// Queue asks for the advisory lock, and adds the row of the name first if there is none.
func (s *session) Queue(giveUp context.Context, name string, waits bool) (taken bool, err error) {
	if strings.Contains(name, "\x00") {
		return false, fmt.Errorf("no text of PostgreSQL has a zero byte, as %q", name)
	}
	for range 2 {
		var answer *bool // nil: see asks
		if waits {
			answer, err = s.wait(giveUp, name)
		} else {
			answer, err = s.try(giveUp, name)
		}
		switch {
		case err == nil && answer == nil:
			return false, errNoSession
		case err == nil:
			return *answer, nil
		case !errors.Is(err, pgx.ErrNoRows):
			return false, err
		}
		err = s.bounded(giveUp, func(ctx context.Context) error {
			_, err := s.conn.Exec(ctx, addName, name)
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("the row of %q was deleted", name)
}

// bounded makes a request that does not wait for others. It does not end with giveUp: pgx would close the connection.
func (s *session) bounded(giveUp context.Context, request func(context.Context) error) error {
	return store.Bounded(context.WithoutCancel(giveUp), s.timeout, request)
}

// try has the settings before it can have the lock: who vanishes in between would keep it.
func (s *session) try(giveUp context.Context, name string) (taken *bool, err error) {
	err = s.bounded(giveUp, func(ctx context.Context) error {
		var batch pgx.Batch
		batch.Queue(settings, s.length())
		batch.Queue(try, name)
		err := s.last(ctx, &batch, &s.class, &s.id, &taken)
		if err == nil && taken != nil && !*taken { // the connection goes back to the pool
			_, err = s.conn.Conn().PgConn().Exec(ctx, reset).ReadAll()
		}
		return err
	})
	return taken, err
}

// wait does not end with giveUp either. It cancels the statement.
func (s *session) wait(giveUp context.Context, name string) (taken *bool, err error) {
	ctx, cut := context.WithCancel(context.WithoutCancel(giveUp))
	defer cut()
	requested := make(chan error, 1)
	stop := context.AfterFunc(giveUp, func() { // owner: this call; stop: timeout; joined below
		requested <- s.cancel(ctx, cut)
	})
	var batch pgx.Batch
	batch.Queue(patience)
	batch.Queue(settings, s.length())
	batch.Queue(wait, name)
	err = s.last(ctx, &batch, &s.class, &s.id, &taken)
	if stop() {
		return taken, err
	}
	failed := <-requested
	// A request to cancel that was given up may arrive later and hit the next statement, and so may one that met an answer, so the
	// connection is not used again.
	var code *pgconn.PgError
	if errors.As(err, &code) && code.Code == queryCanceled && failed == nil {
		return nil, s.undo(giveUp, name)
	}
	return nil, fmt.Errorf("the wait was cancelled: %v, %v", failed, err) //nolint:errorlint // they may be those of other contexts
}

// undo frees the advisory lock that a statement may have got just before it was cancelled: it outlives the transaction.
func (s *session) undo(giveUp context.Context, name string) error {
	err := s.bounded(giveUp, func(ctx context.Context) error {
		_, err := s.conn.Exec(ctx, free, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("free what was granted too late: %s", err) //nolint:errorlint // it may be that of another context
	}
	return giveUp.Err()
}

func (s *session) length() string { return strconv.FormatInt(s.ttl.Milliseconds(), 10) }

// last runs statements in one transaction, and scans the row of the last one.
func (s *session) last(ctx context.Context, batch *pgx.Batch, into ...any) (err error) {
	results := s.conn.SendBatch(ctx, batch)
	defer func() {
		if closing := results.Close(); err == nil {
			err = closing
		}
	}()
	for range batch.Len() - 1 {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	return results.QueryRow().Scan(into...)
}

// cancel cancels the statement, and cuts the connection if that does not end it in time. It returns nil when the server has dealt with the
// request, which signals the session more than once, also after the statement has ended.
func (s *session) cancel(ctx context.Context, cut context.CancelFunc) error {
	time.AfterFunc(s.timeout, cut) // nothing is left to cut when the statement has ended
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer stop()
	return errors.Join(s.conn.Conn().PgConn().CancelRequest(ctx), ctx.Err())
}

// durable makes the transaction wait for the disk, whatever the connection does otherwise.
const durable = `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`

// claim is one statement: the row has been seen by nobody else since the advisory lock was taken. A wait that would be longer than the
// lease says that the clock was set back.
const claim = `UPDATE cacheguard_locks SET
		fence    = CASE WHEN free THEN greatest(fence + 1, 1) ELSE fence END,
		lease_ms = CASE WHEN free THEN $2 ELSE lease_ms END,
		free_at  = CASE WHEN free THEN 0 WHEN free_at = 0 THEN now_ms + lease_ms ELSE least(free_at, now_ms + lease_ms) END
	FROM (SELECT id AS row_id, $3 OR lease_ms = 0 OR free_at > 0 AND free_at <= now_ms AS free, now_ms FROM cacheguard_locks,
		(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms OFFSET 0) clock WHERE id = $1) state
	WHERE id = row_id RETURNING fence, CASE WHEN free THEN 0 ELSE free_at - now_ms END`

// Claim commits before it returns: the fence must survive a crash, whatever the pool's connections think of commits.
func (s *session) Claim(ctx context.Context, waited bool) (fence int64, left time.Duration, err error) {
	var batch pgx.Batch
	batch.Queue(settings, s.length())
	batch.Queue(durable)
	batch.Queue(claim, s.id, s.ttl.Milliseconds(), waited)
	var ms int64
	err = s.last(ctx, &batch, &fence, &ms)
	s.fence = fence
	return fence, time.Duration(ms) * time.Millisecond, err
}

// Idle reads from the connection. Nothing should come, but a server that goes says so.
func (s *session) Idle(ctx context.Context) error {
	for {
		err := s.conn.Conn().PgConn().WaitForNotification(ctx)
		switch {
		case err == nil: // a notification for somebody else
		case ctx.Err() != nil && !s.conn.Conn().IsClosed():
			return nil
		default:
			return err
		}
	}
}

// Ping makes sure that the session still has the advisory lock.
func (s *session) Ping(ctx context.Context) (err error) {
	var mine bool
	if err = s.conn.QueryRow(ctx, `SELECT `+hasLock("$1", "$2"), s.class, s.id).Scan(&mine); err == nil && !mine {
		err = errNoSession
	}
	return err
}

// Leave commits that the lock is given up before the next in the queue can see the row.
func (s *session) Leave(ctx context.Context, holder bool) error {
	id := strconv.Itoa(int(s.id)) // numbers, so nothing needs quoting
	statements := `SELECT pg_advisory_unlock(` + strconv.Itoa(int(s.class)) + `, ` + id + `); ` + reset
	if holder {
		statements = `BEGIN; UPDATE cacheguard_locks SET lease_ms = 0, free_at = 0 WHERE id = ` + id + ` AND fence = ` +
			strconv.FormatInt(s.fence, 10) + `; COMMIT; ` + statements
	}
	results, err := s.conn.Conn().PgConn().Exec(ctx, statements).ReadAll()
	if err == nil && string(results[len(results)-3].Rows[0][0]) != "t" { // before the two of reset
		err = errNoSession
	}
	return err
}

func (s *session) Return() { s.conn.Release() }

func (s *session) Discard() {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	pg := s.conn.Conn().PgConn()
	_ = s.conn.Conn().Close(ctx) // it is closed, whatever it says
	select {
	case <-pg.CleanupDone():
	case <-ctx.Done():
	}
	s.conn.Release()
}
