package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc"
)

// SelfCheck returns what keeps the feed from working, joined, each with the statement that mends it: settings of the server, rights of the role, the
// publication and its tables, a connection as the one that reads the log, their REPLICA IDENTITY, the columns that Changed asks for, the slot, and a feed of another cache that reads it. It changes nothing. nil:
// the feed can work.
func (f *Feed) SelfCheck(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	side, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp(side)
	var p problems
	at, err := f.checkTables(ctx, side, &p)
	if err != nil {
		return err
	}
	if err := f.checkRole(ctx, side, &p); err != nil {
		return err
	}
	if len(p) == 0 { // else it is refused for what is named already
		conn, err := f.dialReplication(ctx)
		if err != nil {
			return err
		}
		hangUpReplication(conn)
	}
	if err := f.checkRows(ctx, side, at, &p); err != nil {
		return err
	}
	return errors.Join(append(p, f.checkPosition(ctx, side))...)
}

type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf("cdc/postgres: "+format, args...))
}

// ready returns what the catalogue has of the tables, or an error that says why changes would be missed.
func (f *Feed) ready(ctx context.Context, side *pgx.Conn) (*tree, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var p problems
	at, err := f.checkTables(ctx, side, &p)
	if err := errors.Join(append(p, err)...); err != nil {
		return nil, err
	}
	return at, nil
}

// checkTables checks the server and the publication, and that the publication has the tables.
func (f *Feed) checkTables(ctx context.Context, side *pgx.Conn, p *problems) (*tree, error) {
	var level string
	var standby bool
	err := side.QueryRow(ctx, "SELECT current_setting('wal_level'), pg_is_in_recovery()").Scan(&level, &standby)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	if version(side) < 13 {
		p.add("the server is older than PostgreSQL 13")
	}
	if level != "logical" {
		p.add("wal_level is %s (mend with: ALTER SYSTEM SET wal_level = 'logical', and a restart)", level)
	}
	if standby {
		p.add("the server is a standby: Conn must lead to the primary")
	}
	return f.tree(ctx, side, p)
}

func (f *Feed) checkRole(ctx context.Context, side *pgx.Conn, p *problems) error {
	var role string
	var may bool
	var used, slots, senders int
	err := side.QueryRow(ctx, `SELECT rolname, rolreplication OR rolsuper,
		(SELECT count(*) FROM pg_replication_slots WHERE slot_name <> $1), current_setting('max_replication_slots')::int, current_setting('max_wal_senders')::int
		FROM pg_roles WHERE rolname = current_user`, f.cfg.Slot).Scan(&role, &may, &used, &slots, &senders)
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	if !may {
		p.add("role %s may not replicate (mend with: ALTER ROLE %s REPLICATION)", role, identifier(role))
	}
	if used+2 > slots { // the slot, and the temporary one that it is copied from
		p.add("%d of %d replication slots are used by others, and the feed needs 2 (mend with: ALTER SYSTEM SET max_replication_slots = %d, and a restart)", used, slots, used+2)
	}
	if senders == 0 {
		p.add("max_wal_senders is 0 (mend with: ALTER SYSTEM SET max_wal_senders = 10, and a restart)")
	}
	return nil
}

// checkRows checks that the log has of rows what Changed asks for, and what PostgreSQL checks when somebody updates or deletes rows: it refuses that.
func (f *Feed) checkRows(ctx context.Context, side *pgx.Conn, at *tree, p *problems) error {
	said := make(map[string]bool)
	for id, m := range at.members {
		if m.kind != "r" {
			continue
		}
		table := quote(m.name)
		if m.identity == "" && !said[m.name] {
			said[m.name] = true // it may belong to several
			p.add("table %s has no REPLICA IDENTITY, so PostgreSQL refuses to UPDATE and DELETE its rows while it is published "+
				"(mend with: ALTER TABLE %s ADD PRIMARY KEY (…), or ALTER TABLE %s REPLICA IDENTITY FULL)", m.name, table, table)
		}
		err := f.try(ctx, side, id[1], m)
		if err != nil && !errors.As(err, new(*cdc.RowError)) {
			return err
		}
		if err != nil && !said[m.root+err.Error()] {
			said[m.root+err.Error()] = true
			*p = append(*p, err)
		}
	}
	return nil
}

// checkPosition checks that nobody else reads the slot.
func (f *Feed) checkPosition(ctx context.Context, side *pgx.Conn) error {
	slot, err := f.look(ctx, side)
	switch {
	case err != nil || !slot.there:
		return err
	case slot.lost:
		return fmt.Errorf("cdc/postgres: slot %s is lost: the feed will drop it, and invalidate everything", f.cfg.Slot)
	case !slot.active:
		return nil // whoever reads it next sees by the note whose it was
	}
	return f.stranger(ctx, side)
}
