package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/internal/run/config"
)

// Config describes a Feed. Dialect, Tables and Guards are required.
type Config struct {
	Dialect Dialect

	// Tables are what changes of tables invalidate. They are named as for Triggers.
	Tables []cdc.Table

	// Guards are whose entries are invalidated: usually one.
	Guards []*cacheguard.Guard

	// Order has Caches of which values are made of each other, each after those that its own are made of. See cdc.Kind. Default: none; what is
	// read together is invalidated together.
	Order []cdc.Kind

	// Poll is how often the Feed looks into an outbox that was empty. At least a millisecond. Default: 200 ms.
	Poll time.Duration

	// MaxRows is how many rows of the mapped tables the outbox may have. At half of that, the Feed warns. When there are more, they are deleted, and
	// the kinds of all Tables are invalidated whole. Default: 1,000,000. -1: no limit.
	MaxRows int

	// Logger gets the begin and the end of troubles, and why kinds are invalidated whole. Default: none.
	Logger *slog.Logger
}

const (
	batch      = 1000
	smallest   = 50 // batch, of a Redis that did not manage a larger one in time
	firstPause = 100 * time.Millisecond
	maxPause   = time.Second      // so that a trouble which is over is seen to be
	timeout    = 10 * time.Second // of a look into the outbox
	countEvery = 5 * time.Second
)

// Feed reads the outbox of a database. It is safe for concurrent use.
type Feed struct {
	db     *sql.DB
	cfg    Config
	engine *engine.Engine
	of     string // the SQL condition for rows about mapped tables
	notes  engine.Notes
	every  time.Duration // looks at triggers, tables and who reads
	warned bool
	size   int // of the next batch, for Run

	noted map[string]*noted // of each table, for Run
}

// New returns a Feed. It does no I/O and starts no goroutine. The error names every field of cfg that is out of range. The Feed uses up to
// two connections of db, which must be of the primary.
func New(db *sql.DB, cfg Config) (*Feed, error) {
	var p config.Problems
	if db == nil {
		p.Add("db", "is nil")
	}
	if CreateTable(cfg.Dialect) == nil {
		p.Add("Dialect", "%q is neither postgres, mysql nor sqlite", cfg.Dialect)
	}
	if cfg.Poll < 0 || cfg.Poll > 0 && cfg.Poll < time.Millisecond {
		p.Add("Poll", "%v is shorter than a millisecond", cfg.Poll)
	}
	if cfg.MaxRows < config.Off {
		p.Add("MaxRows", "%d is negative (use -1 for no limit)", cfg.MaxRows)
	}
	tables := engine.Check(&p, cfg.Tables, cfg.Guards, cfg.Order...)
	if tables[everything] != nil {
		p.Add("Tables", "%s stands for all tables", everything)
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("cdc/outbox: %w", err)
	}
	config.SetDefault(&cfg.Poll, 200*time.Millisecond)
	config.SetDefault(&cfg.MaxRows, 1_000_000)
	cfg.Logger = engine.Logger(cfg.Logger, cfg.Guards)
	f := &Feed{db: db, cfg: cfg, size: batch, every: countEvery, engine: &engine.Engine{Tables: tables, Guards: cfg.Guards, Order: cfg.Order, Log: cfg.Logger}}
	f.of, f.notes = f.mapped(), engine.Notes{Guards: cfg.Guards, Name: "outbox"}
	return f, nil
}

// Run invalidates what changes, until ctx ends; the error is its cause then. Run it on every instance. Whatever fails is tried again, so Run returns early
// only if a Guard is closed, or if Run is running already. Stats and the Logger say what fails.
func (f *Feed) Run(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	end, err := f.engine.Start()
	if err != nil {
		return err
	}
	defer end()
	failing := firstPause
	var counted time.Time
	for {
		pause := f.cfg.Poll
		more, err := f.round(ctx, &counted)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, cacheguard.ErrClosed):
			return err
		case err != nil:
			f.engine.Reading(false, time.Time{})
			f.engine.Reconnected()
			f.engine.Trouble(err)
			pause, failing, f.size = failing, min(2*failing, maxPause), max(f.size/2, smallest)
		default:
			f.engine.Trouble(nil)
			failing, f.size = firstPause, min(2*f.size, batch)
		}
		if more {
			continue
		}
		if err := engine.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// round invalidates a batch, and reports whether there may be more.
func (f *Feed) round(ctx context.Context, counted *time.Time) (more bool, err error) {
	if time.Since(*counted) > f.every {
		if err := f.watch(ctx); err != nil {
			return false, err
		}
		if err := f.bound(ctx); err != nil {
			return false, err
		}
		*counted = time.Now()
	}
	return f.empty(ctx)
}

// Stats are the figures of now. BehindBytes and Retained are 0. All instances are Reading.
func (f *Feed) Stats() cdc.Stats {
	if f == nil {
		return cdc.Stats{Err: errNilFeed}
	}
	return f.engine.Stats()
}

// CatchUp returns when everything that was committed before the call is invalidated in Redis: after a migration, in a test, as the last step of a
// deployment. Some instance must Run. If ctx ends before, the error matches its cause, and the trouble that the Feed has. It returns an error at once if a table has
// no triggers.
func (f *Feed) CatchUp(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	noted, err := f.look(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for name, n := range noted {
		problems = append(problems, n.missing(name))
	}
	if err := errors.Join(problems...); err != nil { // an empty outbox says nothing
		return err
	}
	var last sql.NullInt64
	var awaited engine.Awaited
	if err := f.db.QueryRowContext(ctx, join("SELECT max(id) FROM ", defaultTable, " WHERE ", f.of)).Scan(&last); err != nil {
		return fmt.Errorf("cdc/outbox: look into the outbox: %w", err)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		var left int
		err := f.db.QueryRowContext(ctx, join("SELECT count(*) FROM ", defaultTable, " WHERE id <= ", number(last.Int64), " AND ", f.of)).Scan(&left)
		if err == nil && left == 0 {
			if err = f.known(ctx, noted); err == nil {
				return nil
			}
			err = awaited.Judge(err)
		}
		if err == nil || errors.Is(err, errNotYet) {
			err = engine.Sleep(ctx, pause)
		}
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("cdc/outbox: not caught up, %d rows are left: %w", left, errors.Join(context.Cause(ctx), f.Stats().Err))
		}
		if err != nil {
			return fmt.Errorf("cdc/outbox: look into the outbox: %w", err)
		}
	}
}

var errNilFeed = errors.New("cdc/outbox: feed is nil (did New return an error?)")
