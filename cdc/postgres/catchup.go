package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// CatchUp returns when everything that was committed before the call is invalidated in Redis: after a migration, in a test, as the last step
// of a deployment. Any process may call it, while some instance runs the feed. It writes a mark of some bytes into the log, and waits until
// that is confirmed, by a feed that invalidates this cache, for the same tables. If ctx ends before, the error says how far the feed is, and matches
// the cause of that. It returns an error at once if waiting would not help: the slot, or the publication, does not belong to this feed, or leaves changes out.
func (f *Feed) CatchUp(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	side, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp(side)
	var marked string
	if err := side.QueryRow(ctx, "SELECT pg_logical_emit_message(true, $1, '')::text", mark).Scan(&marked); err != nil {
		return fmt.Errorf("cdc/postgres: mark the log: %w", err)
	}
	var awaited engine.Awaited
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		done, state, err := f.passed(ctx, side, marked)
		if done {
			return nil
		}
		if err = awaited.Judge(err); err == nil {
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

// passed reports whether everything before a mark is invalidated, or else how far the feed is. The error says that waiting does not help.
func (f *Feed) passed(ctx context.Context, side *pgx.Conn, marked string) (done bool, state string, err error) {
	end, err := pglogrepl.ParseLSN(marked)
	if err != nil {
		return false, "", fmt.Errorf("cdc/postgres: mark the log: %w", err)
	}
	at, err := f.look(ctx, side)
	if err != nil {
		return false, "the slot cannot be looked at", err
	}
	if !at.there || at.confirmed >= end { // the position moves, and the changes are not in the log; or a slot is not made for that
		if _, err := f.ready(ctx, side); err != nil {
			return false, "changes are missed", err
		}
	}
	switch {
	case !at.there:
		return false, fmt.Sprintf("there is no slot %s yet", f.cfg.Slot), nil
	case at.confirmed < end && !at.active:
		return false, fmt.Sprintf("no instance reads slot %s", f.cfg.Slot), nil
	case at.confirmed < end:
		return false, fmt.Sprintf("slot %s is %d bytes behind", f.cfg.Slot, end-at.confirmed), nil
	}
	noted, err := f.owns(ctx, side, at)
	if err != nil {
		return false, "slot " + f.cfg.Slot + " was read by another", err
	}
	if lacking := noted.Lacking(f.engine.Tables); len(lacking) > 0 {
		return false, "", fmt.Errorf("cdc/postgres: the feed that reads slot %s does not map %s: is it of an older version?", f.cfg.Slot, strings.Join(lacking, ", "))
	}
	return true, "", nil
}
