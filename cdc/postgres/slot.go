package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// slot is the state of the slot, and of the log. One that another instance is making has no plugin for a moment.
type slot struct {
	there, active, lost bool
	confirmed           pglogrepl.LSN
	behind, retained    int64

	end  pglogrepl.LSN // of the log
	when time.Time     // it was there
}

const lookAtSlot = `SELECT s.slot_name IS NOT NULL, coalesce(s.active, false), coalesce(s.wal_status = 'lost', false),
	coalesce(s.confirmed_flush_lsn, '0/0')::text, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn), 0)::bigint,
	coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint, now_end::text, clock_timestamp(),
	s.slot_name IS NULL OR coalesce(s.plugin IN ('pgoutput', '') AND s.database = current_database(), false)
	FROM (SELECT pg_current_wal_insert_lsn() AS now_end) w LEFT JOIN pg_replication_slots s ON s.slot_name = $1`

// look asks for the state of the slot, and notes it for Stats.
func (f *Feed) look(ctx context.Context, side *pgx.Conn) (s slot, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var confirmed, end string
	var ours bool
	err = side.QueryRow(ctx, lookAtSlot, f.cfg.Slot).Scan(
		&s.there, &s.active, &s.lost, &confirmed, &s.behind, &s.retained, &end, &s.when, &ours)
	if err != nil {
		return s, fmt.Errorf("cdc/postgres: look at slot %s: %w", f.cfg.Slot, err)
	}
	if !ours {
		return s, fmt.Errorf("cdc/postgres: slot %s is another's: of another database, or not of plugin pgoutput", f.cfg.Slot)
	}
	if s.confirmed, err = pglogrepl.ParseLSN(confirmed); err != nil {
		return s, err
	}
	if s.end, err = pglogrepl.ParseLSN(end); err != nil {
		return s, err
	}
	f.engine.Lag(s.behind, s.retained)
	return s, nil
}

// create makes the slot. A slot claims that everything before its position is invalidated, so it is made last, as a copy of a temporary one that
// ends with the connection: an instance that dies in between leaves nothing behind. An advisory lock admits one instance.
func (f *Feed) create(ctx context.Context, conn *pgconn.PgConn, side *pgx.Conn, old slot) error {
	why := f.why
	switch {
	case old.lost:
		why = "the database has given up the slot (max_slot_wal_keep_size)"
	case f.cfg.Temporary:
		why = "a temporary slot begins"
	case why == "":
		why = "there is no slot: it was dropped, or this is the first start"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*timeout) // which bounds what the temporary slot keeps of the log
	defer cancel()
	lock := "hashtextextended(" + literal("cacheguard "+f.cfg.Slot) + ", 0)"
	got, err := f.ask(ctx, conn, "SELECT pg_try_advisory_lock("+lock+")")
	if err != nil {
		return err
	}
	if got != "t" {
		return errStandBy
	}
	if now, err := f.look(ctx, side); err != nil || now.there && !now.lost {
		return errors.Join(errStandBy, err)
	}
	if old.lost {
		if err := f.drop(ctx, side); err != nil {
			return err
		}
	}
	fresh := literal(f.cfg.Slot + "_new")
	if err := f.createTemporary(ctx, conn, side, fresh); err != nil {
		return err
	}
	if err := settled(ctx, nil, func() (snapshot, error) { return takeSnapshot(ctx, side) }); err != nil {
		return err
	}
	if err := f.engine.Whole(ctx, why); err != nil {
		return err
	}
	_, err = f.ask(ctx, conn, fmt.Sprintf("SELECT slot_name FROM pg_copy_logical_replication_slot(%s, %s, %t)", fresh, literal(f.cfg.Slot), f.cfg.Temporary))
	if err != nil {
		return err
	}
	f.why = ""
	_, err = f.ask(ctx, conn, "SELECT pg_drop_replication_slot("+fresh+"), pg_advisory_unlock("+lock+")")
	return err
}

// createTemporary makes the slot that is copied. The database does so when the transactions that run have ended. If somebody has left one open, nothing can be
// read meanwhile: the kinds are invalidated whole at each attempt, so that values are old for about as long as one takes, and no longer.
func (f *Feed) createTemporary(ctx context.Context, conn *pgconn.PgConn, side *pgx.Conn, name string) error {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := f.ask(waiting, conn, "SELECT slot_name FROM pg_create_logical_replication_slot("+name+", 'pgoutput', true)")
	if waiting.Err() == nil || ctx.Err() != nil {
		return err
	}
	by, age, asked := openTransaction(ctx, side)
	if asked != nil || by == "" {
		return errors.Join(err, asked)
	}
	f.engine.Held(by, age)
	return errors.Join(fmt.Errorf("cdc/postgres: no slot can be made before the end of %s", by), f.engine.Whole(ctx, "there is no slot, and none can be made before the end of "+by))
}

// openTransaction says which transaction is the oldest that runs and has changed something. The database keeps its log from there on for each slot.
func openTransaction(ctx context.Context, side *pgx.Conn) (by string, age time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var seconds float64
	err = side.QueryRow(ctx, `SELECT said, seconds FROM (
		SELECT format('a transaction of pid %s (role %s, application %s, database %s, %s)', pid, usename, application_name, datname, state) AS said,
			extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds, age(backend_xid) AS age
		FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
		UNION ALL SELECT format('the prepared transaction %s (role %s, database %s)', gid, owner, database), extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
		FROM pg_prepared_xacts
		UNION ALL SELECT 'a transaction that this role may not see (see it with: GRANT pg_read_all_stats TO ' || quote_ident(current_user) || ')', 0, 0
		WHERE txid_snapshot_xmin(txid_current_snapshot()) < txid_snapshot_xmax(txid_current_snapshot())) t
		ORDER BY age DESC LIMIT 1`).Scan(&by, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("cdc/postgres: ask which transactions are open: %w", err)
	}
	return by, time.Duration(seconds * float64(time.Second)), nil
}

// holder asks who holds the log back, if it is not the feed: most of what the slot holds back is before what the feed has confirmed.
func (f *Feed) holder(ctx context.Context, side *pgx.Conn, s slot) (by string, err error) {
	var age time.Duration
	if s.retained-s.behind > s.retained/2 && s.retained > segment {
		if by, age, err = openTransaction(ctx, side); err != nil {
			return "", err
		}
	}
	f.engine.Held(by, age)
	return by, nil
}

// segment is the size of a file of the log, as a rule. Less than some of them say nothing.
const segment = 16 << 20

// givenUp is why a slot is not read any more.
type givenUp string

func (why givenUp) Error() string { return "cdc/postgres: the slot is given up: " + string(why) }

// bound returns a givenUp if the slot holds back too much, and warns at half of that. A transaction that was left open holds it back, too, although the feed is not
// behind: then the lines say whose it is.
func (f *Feed) bound(ctx context.Context, side *pgx.Conn, s slot) error {
	by, err := f.holder(ctx, side, s)
	if err != nil {
		return err
	}
	limit := f.cfg.MaxRetained
	half := limit > 0 && s.retained > limit/2
	if half && !f.warned {
		f.cfg.Logger.Warn("cdc: the slot holds back more than half of MaxRetained", "bytes", s.retained, "behind", s.behind, "MaxRetained", limit, "held by", by)
	}
	f.warned = half
	if limit > 0 && s.retained > limit {
		why := fmt.Sprintf("it held back more than MaxRetained (%d bytes)", limit)
		if by != "" {
			why += fmt.Sprintf(", of which the feed was %d behind: the rest was held by %s", s.behind, by)
		}
		return givenUp(why)
	}
	return nil
}

// giveUp drops the slot, so that the next session makes another and invalidates everything.
func (f *Feed) giveUp(ctx context.Context, side *pgx.Conn, why givenUp) error {
	f.why = string(why)
	f.cfg.Logger.Error("cdc: the slot is given up", "why", f.why)
	if err := f.drop(ctx, side); err != nil {
		return err
	}
	return why
}

// drop drops the slot as soon as nobody reads it, unless another instance begins to.
func (f *Feed) drop(ctx context.Context, side *pgx.Conn) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		_, err = side.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", f.cfg.Slot)
		if !is(err, "55006") { // still in use
			break
		}
		if engine.Sleep(ctx, pause) != nil {
			break
		}
	}
	if err != nil && !is(err, "42704") { // it is gone
		return fmt.Errorf("cdc/postgres: drop slot %s: %w", f.cfg.Slot, err)
	}
	return nil
}

// ask runs a statement on a connection for replication, which takes no parameters, and returns the first column of the first row.
func (f *Feed) ask(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", fmt.Errorf("cdc/postgres: make slot %s: %w", f.cfg.Slot, err)
	}
	if len(results) == 0 || len(results[0].Rows) == 0 {
		return "", nil
	}
	return string(results[0].Rows[0][0]), nil
}

func literal(s string) string {
	s = strings.ReplaceAll(s, "'", "''")
	if strings.Contains(s, `\`) {
		return ` E'` + strings.ReplaceAll(s, `\`, `\\`) + `'`
	}
	return "'" + s + "'"
}

func identifier(s string) string { return pgx.Identifier{s}.Sanitize() }
