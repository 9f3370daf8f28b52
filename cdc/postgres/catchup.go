package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// CatchUp returns when everything that was committed before the call is invalidated in Redis: after a migration, in a test, as the last step
// of a deployment. Any process may call it, while some instance runs the feed. It writes a mark of some bytes into the log, and waits until
// that is confirmed. If ctx ends before, the error says how far the feed is, and matches
// the cause of that.
func (f *Feed) CatchUp(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	side, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp(side)
	var mark string
	if err := side.QueryRow(ctx, "SELECT pg_logical_emit_message(true, 'cacheguard', '')::text").Scan(&mark); err != nil {
		return fmt.Errorf("cdc/postgres: mark the log: %w", err)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		done, state, err := f.passed(ctx, side, mark)
		if done {
			return nil
		}
		if err == nil {
			err = engine.Sleep(ctx, pause)
		}
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("cdc/postgres: not caught up, %s: %w", state, errors.Join(context.Cause(ctx), f.Stats().Err))
		}
		if err != nil {
			return err
		}
	}
}

// passed reports whether everything before a mark is confirmed, or else how far the slot is.
func (f *Feed) passed(ctx context.Context, side *pgx.Conn, mark string) (done bool, state string, err error) {
	var active bool
	var behind int64
	err = side.QueryRow(ctx, `SELECT confirmed_flush_lsn >= $2::text::pg_lsn, active, ($2::text::pg_lsn - confirmed_flush_lsn)::bigint
		FROM pg_replication_slots WHERE slot_name = $1 AND confirmed_flush_lsn IS NOT NULL`, f.cfg.Slot, mark).Scan(&done, &active, &behind)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, fmt.Sprintf("there is no slot %s yet", f.cfg.Slot), nil
	case err != nil:
		return false, "the database does not answer", fmt.Errorf("cdc/postgres: look at slot %s: %w", f.cfg.Slot, err)
	case !active:
		return done, fmt.Sprintf("no instance reads slot %s", f.cfg.Slot), nil
	}
	return done, fmt.Sprintf("slot %s is %d bytes behind", f.cfg.Slot, behind), nil
}
