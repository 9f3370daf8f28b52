package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// CatchUp returns when everything that was committed before the call is invalidated in Redis: after a migration, in a test, as the last step
// of a deployment. Any process may call it, while some instance runs the feed. If ctx ends before, the error says how far the
// feed is, and matches the cause of that. It returns an error at once if waiting would not help: a feed of another cache, or of other tables, has stored the position.
func (f *Feed) CatchUp(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	db := f.open()
	defer func() { _ = db.Close() }() // whatever it says, the connection is gone
	end, err := f.snapshot(ctx, db)
	if err != nil {
		return err
	}
	var awaited engine.Awaited
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		at, there, err := f.stored(ctx)
		if err == nil && there && at.server == end.server && at.number() >= end.number() {
			switch err = f.mine(ctx, db, at); {
			case err == nil:
				return nil
			case errors.Is(err, errShorter): // whoever reads notices within a second
				end, err = f.snapshot(ctx, db)
			default:
				err = awaited.Judge(err)
			}
		}
		if err == nil {
			err = engine.Sleep(ctx, pause)
		}
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("cdc/mysql: not caught up, at %v of %v: %w", at, end, errors.Join(context.Cause(ctx), f.Stats().Err))
		}
		if err != nil {
			return err
		}
	}
}

// mine returns why a position that is stored says nothing of this cache and these tables.
func (f *Feed) mine(ctx context.Context, db *sql.DB, at place) error {
	if err := f.within(ctx, db, at); err != nil {
		return err
	}
	if err := f.checkTables(ctx, db); err != nil { // the position moves, and the changes are not in the log
		return err
	}
	noted, err := f.notes.Own(ctx, at.server, at.number())
	if err != nil {
		return fmt.Errorf("cdc/mysql: position %s: %w", f.cfg.Name, err)
	}
	if lacking := noted.Lacking(f.engine.Tables); len(lacking) > 0 {
		return fmt.Errorf("cdc/mysql: the feed %s that reads does not map %s: is it of an older version?", f.cfg.Name, strings.Join(lacking, ", "))
	}
	return nil
}

// stranger returns an error if a feed of another cache has stored the position.
func (f *Feed) stranger(ctx context.Context) error {
	for awaited := new(engine.Awaited); ; {
		at, there, err := f.stored(ctx)
		if err != nil || !there {
			return err
		}
		_, owns := f.notes.Own(ctx, at.server, at.number())
		if err = awaited.Judge(owns); err != nil || !errors.Is(owns, engine.ErrAnother) {
			return err
		}
		if err := engine.Sleep(ctx, firstPause); err != nil {
			return err
		}
	}
}
