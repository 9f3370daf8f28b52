package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// CatchUp returns when everything that was committed before the call is invalidated in Redis: after a migration, in a test, as the last step
// of a deployment. Any process may call it, while some instance runs the feed. If ctx ends before, the error says how far the
// feed is, and matches the cause of that.
func (f *Feed) CatchUp(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	db, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // whatever it says, the connection is gone
	end, err := f.snapshot(ctx, db)
	if err != nil {
		return err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		at, there, err := f.stored(ctx)
		if err == nil && there && at.server == end.server && at.number() >= end.number() {
			return nil
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
