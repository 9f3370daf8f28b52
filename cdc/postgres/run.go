package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc/internal/engine"
)

const (
	lookEvery  = time.Second            // at the slot
	senderDies = "5s"                   // after a reader that is silent
	silence    = 15 * time.Second       // of the database, which answers once a second
	timeout    = 10 * time.Second       // of a statement
	firstPause = 100 * time.Millisecond // after an error
	maxPause   = time.Second            // so that a trouble which is over is seen to be
)

// errStandBy says that another instance reads, which is no trouble.
var errStandBy = errors.New("another instance reads")

// Run invalidates what changes, until ctx ends; the error is its cause then. Run it on every instance: one of them reads the log, the others stand by
// and take over when it dies. Whatever fails is tried again, so Run returns early only if a Guard is closed, or if Run is running
// already. Stats and the Logger say what fails.
func (f *Feed) Run(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	end, err := f.engine.Start()
	if err != nil {
		return err
	}
	defer end()
	pause := firstPause
	for {
		began := time.Now()
		err := f.session(ctx)
		f.engine.Reading(false, time.Time{})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, cacheguard.ErrClosed):
			return err
		case errors.Is(err, errStandBy):
			f.engine.StandsBy()
			pause = lookEvery
		default:
			f.engine.Reconnected()
			f.engine.Trouble(err)
			if pause = min(2*pause, maxPause); time.Since(began) > maxPause {
				pause = firstPause
			}
		}
		if err := engine.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// session reads the log until something ends that, or stands by until another instance does not read.
func (f *Feed) session(ctx context.Context) error {
	side, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp(side)
	tables, err := f.ready(ctx, side)
	if err != nil {
		return err
	}
	slot, err := f.standBy(ctx, side)
	if err != nil {
		return err
	}
	var why givenUp
	if errors.As(f.bound(ctx, side, slot), &why) { // what ends each session may do so before watch looks
		return f.giveUp(ctx, side, why)
	}
	conn, err := f.dialReplication(ctx)
	if err != nil {
		return err
	}
	defer hangUpReplication(conn)
	fresh := !slot.there || slot.lost
	if fresh {
		if err := f.create(ctx, conn, side, slot); err != nil {
			return err
		}
		if slot, err = f.look(ctx, side); err != nil {
			return err
		}
	}
	options := []string{"proto_version '1'", "publication_names " + literal(identifier(f.cfg.Publication))}
	if version(side) >= 14 {
		options = append(options, "messages 'true'")
	}
	err = pglogrepl.StartReplication(ctx, conn, f.cfg.Slot, 0, pglogrepl.StartReplicationOptions{PluginArgs: options})
	switch {
	case is(err, "55006"): // it is in use
		return errStandBy
	case err != nil:
		return fmt.Errorf("read slot %s: %w", f.cfg.Slot, err)
	}
	r := newReader(f, conn, side, tables, slot)
	if err = r.own(ctx, slot, fresh); err == nil {
		err = r.run(ctx)
	}
	if errors.As(err, &why) {
		hangUpReplication(conn)
		return f.giveUp(ctx, side, why)
	}
	return err
}

// standBy returns when nobody reads the slot.
func (f *Feed) standBy(ctx context.Context, side *pgx.Conn) (slot, error) {
	for {
		at, err := f.look(ctx, side)
		if err != nil || !at.there || !at.active {
			return at, err
		}
		if err := f.stranger(ctx, side); err != nil {
			f.engine.Trouble(err)
		} else {
			f.engine.StandsBy()
		}
		if _, err := f.holder(ctx, side, at); err != nil {
			return at, err
		}
		if err := engine.Sleep(ctx, lookEvery); err != nil {
			return at, err
		}
	}
}

// dial opens a connection for statements.
func (f *Feed) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cfg, err := f.conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	name(cfg.RuntimeParams, f.cfg.Slot)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	return conn, nil
}

// dialReplication opens one that can read the log.
func (f *Feed) dialReplication(ctx context.Context) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	whole, err := f.conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	cfg := &whole.Config
	name(cfg.RuntimeParams, f.cfg.Slot)
	cfg.RuntimeParams["replication"] = "database"
	cfg.RuntimeParams["wal_sender_timeout"] = senderDies
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: connect for replication: %w", err)
	}
	return conn, nil
}

// name tells administrators whose connection it is, and has the database write times and bytes in the format that parse reads.
func name(params map[string]string, slot string) {
	if params["application_name"] == "" {
		params["application_name"] = "cacheguard " + slot
	}
	params["datestyle"] = "ISO"
	params["timezone"] = "UTC"
	params["bytea_output"] = "hex"
	params["intervalstyle"] = "postgres"
	params["extra_float_digits"] = "1"
	params["client_encoding"] = "UTF8"
	params["jit"] = "off" // it would take seconds for a query of the catalogue
}

// version is the server's, as in 15.
func version(side *pgx.Conn) (major int) {
	_, _ = fmt.Sscan(side.PgConn().ParameterStatus("server_version"), &major) // it begins with that
	return major
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // whatever it says, the connection is gone
}

func hangUpReplication(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // as above
	<-conn.CleanupDone()
}

// is reports whether the database's error has the code.
func is(err error, code string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == code
}
